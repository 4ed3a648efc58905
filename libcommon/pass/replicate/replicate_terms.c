/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients that are a product of rows and something else: weight decay in the loss adds terms that
 * are made of the variable alone. These are the same wherever they are computed, so the product is
 * what is handed over, and they are added to what comes back of it.
 */
#include "graph/worker_attr.h"
#include "pass/replicate/replicate.h"
#include "pass/rewrite.h"

struct term_search {
    struct rewrite rewrite;
    bool *varies; /* by node: it may not be the same in all workers */
    int *n_uses;  /* by node */
};

static bool sums_rows(const struct node *node)
{
    return node->op->def->sums_rows && node->op->def->sums_rows(node);
}

/* By gradient: which input of its sum is handed over. */
static int parted_at(const struct term_search *p, const struct node *node)
{
    bool is_gradient = node_attr(node, "_gradient") && !node_attr(node, "_gradient_role");
    if (!is_gradient)
        return -1;
    /* The gradient is a sum: this is the input with rows, where the others are the same everywhere;
     * -1: it is no such sum. */
    const struct graph *from = p->rewrite.from;
    const struct node *sum = graph_node(from, node->inputs[0].node);
    int product = -1, n_vary = 0;
    for (int i = 0; i < sum->n_inputs; i++) {
        if (!p->varies[sum->inputs[i].node])
            continue;
        n_vary++;
        if (sums_rows(graph_node(from, sum->inputs[i].node)))
            product = i;
    }
    return node_has(sum, OP_SUMS) && !sum->n_controls && sum->n_inputs > 1 && n_vary == 1 ? product
                                                                                          : -1;
}

int replicate_part_terms(const struct graph *from, struct graph **to, struct error *err)
{
    static const struct pass_options options = {0};
    const unsigned own = OP_STATEFUL | OP_FED | OP_SOURCE | OP_RANDOM | OP_CONTROL_FLOW | OP_ASYNC |
                         OP_UNINITIALIZED;
    struct term_search p;
    size_t n = from->nodes.n + 1;
    int n_changes;
    *to = NULL;
    if (rewrite_open(&p.rewrite, from, &options, err))
        return err->code;
    p.varies = arena_array(&p.rewrite.arena, n, sizeof *p.varies);
    p.n_uses = arena_array(&p.rewrite.arena, n, sizeof *p.n_uses);
    bool *is_gone = arena_array(&p.rewrite.arena, n, sizeof *is_gone);
    graph_each_ordered(node, from, p.rewrite.order) {
        /* Variables are the workers' own if their attributes say so. */
        bool varies = node_is(node, "Variable")
                          ? node_attr(node, PER_WORKER) || node_attr(node, WORKER_PART_SHAPE)
                          : node_has(node, own) || node_makes_resource(node);
        for (int j = 0; j < node->n_inputs + node->n_controls; j++) {
            int before = node_dependency(node, j).node;
            varies |= p.varies[before];
            p.n_uses[before]++;
        }
        p.varies[node->id] = varies;
    }
    /* A sum that only its gradient has is not needed as it was. */
    graph_each(node, from) {
        if (parted_at(&p, node) >= 0)
            is_gone[node->inputs[0].node] = p.n_uses[node->inputs[0].node] == 1;
    }
    for (size_t i = 0; i < from->entries.n; i++)
        for (int k = 0; k < from->entries.items[i].n_edges; k++)
            is_gone[from->entries.items[i].edges[k].node] = false;
    for (size_t i = 0; i < from->aliases.n; i++)
        is_gone[from->aliases.items[i].edge.node] = false;
    graph_each_ordered(node, from, p.rewrite.order) {
        int product = parted_at(&p, node);
        if (product >= 0) {
            /* Users of the gradient get the sum, which keeps its name. */
            struct node sum =
                rewrite_view(&p.rewrite, graph_node(p.rewrite.from, node->inputs[0].node));
            struct node handed = rewrite_view(&p.rewrite, node);
            handed.inputs[0] = sum.inputs[product];
            sum.inputs[product].node = rewrite_add_beside(&p.rewrite, node, &handed, "rows")->id;
            sum.inputs[product].slot = 0;
            rewrite_add(&p.rewrite, node, &sum);
            rewrite_note(&p.rewrite, node->name, "parted");
        } else if (!is_gone[node->id])
            rewrite_copy(&p.rewrite, node);
    }
    return rewrite_close(&p.rewrite, 0, to, &n_changes);
}
