/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of some rows: a batch has the same word many times, and a gradient a row for each. The
 * worker sums them first, so that each row crosses once.
 */
#include <string.h>

#include "pass/replicate/replicate_private.h"

/* The i-th of the push's edges that has that role; EDGE_NONE: there are not so many. */
static struct edge with_role(const struct replicator *r, const struct push *push, const char *role,
                             int i)
{
    for (size_t k = 0; k < push->edges.n; k++) {
        struct edge edge = push->edges.items[k];
        if (!strcmp(replicate_role(graph_node(r->from, edge.node)), role) && i-- == 0)
            return edge;
    }
    return EDGE_NONE;
}

/* Returns whether the numbers are known to be different. */
static bool is_distinct(const struct replicator *r, struct edge numbers)
{
    const struct node *node = graph_node(r->from, numbers.node);
    while (node->n_inputs == 1 && node->op->def->identity.when == SAME_ALWAYS) {
        numbers = node->inputs[0];
        node = graph_node(r->from, numbers.node);
    }
    return node_rows(node) == ROWS_DISTINCT && numbers.slot == 0;
}

static void sum(struct replicator *r, struct edge numbers, struct edge values)
{
    const char *name = graph_node(r->from, values.node)->name;
    struct edge distinct =
        replicate_op(r, "Unique", replicate_edge(r, numbers), EDGE_NONE, "%s/distinct", name);
    struct edge size = replicate_op(r, "Size", distinct, EDGE_NONE, "%s/distinct/size", name);
    const struct edge inputs[] = {replicate_edge(r, values), build_slot(distinct, 1), size};
    struct edge sums = replicate_node(r, "UnsortedSegmentSum", inputs, 3, NULL, 0, "%s/sum", name);
    edge_map_add(&r->by_edge[BY_ROWS], numbers, distinct.node);
    edge_map_add(&r->by_edge[BY_ROWS], values, sums.node);
}

int replicate_sum_rows(struct replicator *r)
{
    vec_each(push, &r->pushes) {
        for (size_t k = 0; k < push->edges.n && !r->err->code; k++) {
            struct edge numbers = with_role(r, push, ROLE_INDICES, (int)k);
            struct edge values = with_role(r, push, ROLE_VALUES, (int)k);
            if (edge_exists(numbers) && edge_exists(values) && !is_distinct(r, numbers))
                sum(r, numbers, values);
        }
    }
    return r->err->code;
}

struct edge replicate_crossing(struct replicator *r, struct edge edge)
{
    int sum = replicate_at(r, BY_ROWS, edge);
    return sum < 0 ? replicate_edge(r, edge) : (struct edge){sum, 0};
}
