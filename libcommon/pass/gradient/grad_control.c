/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of a conditional: where the forward graph splits the backward one merges, and the other
 * way round, with the same predicate.
 */
#include "pass/gradient/grad_engine.h"

int grad_switch(struct grad_engine *e, struct grad *g)
{
    struct edge branches[2];
    (void)e;
    for (int k = 0; k < 2; k++) /* zeros that are alive when that branch is taken */
        branches[k] = grad_out_or_zeros(g, k);
    g->in[0] = build_op(&g->b, "Merge", branches, 2, NULL, 0);
    return grad_finish(g);
}

/* The condition that leads from the Merge's own to one of its inputs'. */
static const struct condition *branch_of(const struct grad_engine *e, struct edge input, int outer)
{
    int inner = frames_edge_condition(e->frames, e->graph, input);
    const struct condition *items = e->frames->conditions.items;
    if (inner == outer || !frames_implies(e->frames, inner, outer))
        return NULL;
    while (items[inner].parent != outer)
        inner = items[inner].parent;
    return &items[inner];
}

int grad_merge(struct grad_engine *e, struct grad *g)
{
    const struct node *node = g->node;
    int outer = e->frames->condition[node->id];
    for (int i = 0; i < node->n_inputs; i++) {
        const struct condition *branch = branch_of(e, node->inputs[i], outer);
        if (!branch)
            return error_set(e->err, ERR_DATA,
                             "%s: this Merge ends no conditional: it has no gradient",
                             node_text(node));
        struct edge both = build_binary(&g->b, "Switch", g->out[0], branch->predicate);
        g->in[i] = build_slot(both, branch->branch);
    }
    return grad_finish(g);
}
