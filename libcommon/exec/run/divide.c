/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/run/divide.h"

#include "base/memory.h"
#include "exec/plan/prune.h"
#include "graph/join.h"

void request_divide(const struct graph *graph, const struct plan_request *request, const int *place,
                    struct share *shares)
{
    struct prune p;
    prune_init(&p, graph, request, true);
    bool *is_target = mem_array(graph->nodes.n + 1, sizeof *is_target);
    for (int i = 0; i < request->n_targets; i++) {
        vec_push(&shares[place[request->targets[i]]].targets, request->targets[i]);
        is_target[request->targets[i]] = true;
    }
    for (int i = 0; i < request->n_fetches; i++)
        vec_push(&shares[place[request->fetches[i].node]].fetches, i);
    for (int i = 0; i < request->n_feeds; i++)
        vec_push(&shares[place[request->feeds[i].edge.node]].feeds, i);
    graph_each(node, graph) {
        const struct node *send = p.needed[node->id] ? join_send_of(graph, node) : NULL;
        if (send && !is_target[send->id]) {
            vec_push(&shares[place[send->id]].targets, send->id);
            is_target[send->id] = true;
        }
    }
    mem_free(is_target);
    graph_free(p.to);
    prune_release(&p);
}

void share_take_order(const struct share *share, const plan_order *whole, plan_order *own)
{
    for (size_t i = 0; i < whole->n; i++) {
        struct plan_place place = whole->items[i];
        if (place.node >= 0)
            vec_push(own, place);
        for (size_t k = 0; place.node < 0 && k < share->fetches.n; k++) {
            place.input = (int)k;
            if (share->fetches.items[k] == whole->items[i].input)
                vec_push(own, place);
        }
    }
}

bool share_is_idle(const struct share *share)
{
    return !share->fetches.n && !share->targets.n;
}

void share_release(struct share *share)
{
    vec_release(&share->feeds);
    vec_release(&share->fetches);
    vec_release(&share->targets);
}
