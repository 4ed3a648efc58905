/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of some rows: a batch has the same word many times, and a gradient a row for each. The
 * worker sums them first, so that each row crosses once.
 */
#include <string.h>

#include "pass/replicate/replicate_private.h"

/* The i-th that the push has of that role; NULL: there are not so many. */
static struct exchange *with_role(const struct push *push, const char *role, int i)
{
    vec_each(x, &push->exchanges) {
        if (!strcmp(replicate_role((*x)->node), role) && i-- == 0)
            return *x;
    }
    return NULL;
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

static void sum(struct replicator *r, struct exchange *numbers, struct exchange *values)
{
    const char *name = values->node->name;
    struct edge distinct =
        replicate_op(r, "Unique", replicate_edge(r, numbers->edge), EDGE_NONE, "%s/distinct", name);
    struct edge size = replicate_op(r, "Size", distinct, EDGE_NONE, "%s/distinct/size", name);
    const struct edge inputs[] = {replicate_edge(r, values->edge), build_slot(distinct, 1), size};
    numbers->distinct = distinct;
    values->distinct = replicate_node(r, "UnsortedSegmentSum", inputs, 3, NULL, 0, "%s/sum", name);
}

int replicate_sum_rows(struct replicator *r)
{
    vec_each(push, &r->pushes) {
        for (size_t k = 0; k < push->exchanges.n; k++) {
            struct exchange *numbers = with_role(push, ROLE_INDICES, (int)k);
            struct exchange *values = with_role(push, ROLE_VALUES, (int)k);
            if (numbers && values && !is_distinct(r, numbers->edge))
                sum(r, numbers, values);
        }
    }
    return r->err->code;
}

struct edge replicate_crossing(struct replicator *r, const struct exchange *x)
{
    return edge_exists(x->distinct) ? x->distinct : replicate_edge(r, x->edge);
}
