/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/run/divide.h"

#include <string.h>

#include "base/memory.h"
#include "graph/join.h"

bool *request_divide(const struct graph *graph, const struct plan_request *request,
                     const int *place, struct share *shares)
{
    bool *needed = mem_array(graph->nodes.n + 1, sizeof *needed);
    struct arena memory = ARENA_INIT;
    struct edge_map fed = plan_index_feeds(request);
    struct graph_walk walk = graph_walk_new(&memory, graph);
    const struct node *node;
    for (int i = 0; i < request->n_targets; i++) {
        vec_push(&shares[place[request->targets[i]]].targets, request->targets[i]);
        graph_walk_to(&walk, request->targets[i]);
    }
    for (int i = 0; i < request->n_fetches; i++) {
        vec_push(&shares[place[request->fetches[i].node]].fetches, i);
        if (edge_map_get(&fed, request->fetches[i]) < 0)
            graph_walk_to(&walk, request->fetches[i].node);
    }
    for (int i = 0; i < request->n_feeds; i++)
        vec_push(&shares[place[request->feeds[i].edge.node]].feeds, i);
    while ((node = graph_walk_next(&walk, graph))) {
        plan_walk_on(&walk, graph, &fed, node);
        const struct node *send = join_send_of(graph, node);
        if (send && !walk.seen[send->id]) {
            vec_push(&shares[place[send->id]].targets, send->id);
            graph_walk_to(&walk, send->id);
        }
    }
    memcpy(needed, walk.seen, graph->nodes.n * sizeof *needed);
    edge_map_release(&fed);
    arena_release(&memory);
    return needed;
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
