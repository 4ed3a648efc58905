/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/run/divide.h"

#include "base/memory.h"
#include "graph/join.h"

struct search {
    const struct graph *graph;
    const struct plan_request *request;
    char *needed; /* by node */
    VEC(int) todo;
};

static bool is_fed(const struct plan_request *request, struct edge edge)
{
    return plan_find_feed(request->feeds, request->n_feeds, edge) >= 0;
}

static void need(struct search *s, int node)
{
    if (!s->needed[node]) {
        s->needed[node] = 1;
        vec_push(&s->todo, node);
    }
}

static void mark(struct search *s, const int *place, struct share *shares)
{
    while (s->todo.n) {
        const struct node *node = graph_node(s->graph, vec_pop(&s->todo));
        for (int i = 0; i < node->n_inputs; i++)
            if (!is_fed(s->request, node->inputs[i]))
                need(s, node->inputs[i].node);
        for (int i = 0; i < node->n_controls; i++)
            need(s, node->controls[i]);
        const struct node *send = join_send_of(s->graph, node);
        if (send && !s->needed[send->id]) {
            vec_push(&shares[place[send->id]].targets, send->id);
            need(s, send->id);
        }
    }
}

void request_divide(const struct graph *graph, const struct plan_request *request, const int *place,
                    struct share *shares)
{
    struct search s = {.graph = graph, .request = request};
    s.needed = mem_alloc(graph->nodes.n + 1);
    for (int i = 0; i < request->n_targets; i++) {
        vec_push(&shares[place[request->targets[i]]].targets, request->targets[i]);
        need(&s, request->targets[i]);
    }
    for (int i = 0; i < request->n_fetches; i++) {
        vec_push(&shares[place[request->fetches[i].node]].fetches, i);
        if (!is_fed(request, request->fetches[i]))
            need(&s, request->fetches[i].node);
    }
    for (int i = 0; i < request->n_feeds; i++)
        vec_push(&shares[place[request->feeds[i].edge.node]].feeds, i);
    mark(&s, place, shares);
    vec_release(&s.todo);
    mem_free(s.needed);
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
