/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes of one variable that no path orders follow each other as names and all other writes have
 * it (graph/access.h), which may be another way when some of these are one.
 */
#include <string.h>

#include "exec/plan/fuse_alike.h"

#define BATCH 64

struct pair {
    int first, second; /* nodes that write one variable in one step, in the graph's order */
};

struct race {
    const struct alike *alike;
    int *position; /* by node */
    VEC(struct pair) pairs;
    uint64_t *reached; /* by node: bit i: a path leads there from the first of pair i of a batch */
};

static void find_pairs(struct race *r)
{
    const struct alike *a = r->alike;
    for (size_t i = 0; i < a->writes.n; i++) {
        const struct alike_write *x = &a->writes.items[i];
        for (size_t k = i + 1; k < a->writes.n; k++) {
            const struct alike_write *y = &a->writes.items[k];
            bool is_first = r->position[x->node] < r->position[y->node];
            struct pair pair = {is_first ? x->node : y->node, is_first ? y->node : x->node};
            if (x->variable == y->variable && x->node != y->node &&
                a->entries[x->node] & a->entries[y->node])
                vec_push(&r->pairs, pair);
        }
    }
}

static void follow(struct race *r, size_t batch)
{
    const struct fuse_groups *g = r->alike->groups;
    uint64_t *reached = r->reached;
    memset(reached, 0, g->graph->nodes.n * sizeof *reached);
    for (size_t i = batch; i < r->pairs.n && i < batch + BATCH; i++)
        reached[r->pairs.items[i].first] |= (uint64_t)1 << (i - batch);
    for (size_t i = 0; i < g->graph->nodes.n; i++) {
        const struct node *node = graph_node(g->graph, g->order[i]);
        for (int k = 0; k < node->n_inputs; k++)
            reached[node->id] |= edge_exists(node->inputs[k]) ? reached[node->inputs[k].node] : 0;
        for (int k = 0; k < node->n_controls; k++)
            reached[node->id] |= reached[node->controls[k]];
    }
}

bool alike_has_race(const struct alike *a)
{
    const struct fuse_groups *g = a->groups;
    size_t n = g->graph->nodes.n + 1;
    struct race r = {.alike = a};
    bool ordered = true;
    r.position = arena_array(&a->groups->memory, n, sizeof *r.position);
    r.reached = arena_array(&a->groups->memory, n, sizeof *r.reached);
    for (size_t i = 0; i < g->graph->nodes.n; i++)
        r.position[g->order[i]] = (int)i;
    find_pairs(&r);
    for (size_t i = 0; i < r.pairs.n && ordered; i++) {
        if (i % BATCH == 0)
            follow(&r, i);
        ordered = r.reached[r.pairs.items[i].second] >> i % BATCH & 1;
    }
    vec_release(&r.pairs);
    return !ordered;
}
