/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients that workers could make of factors: of both of them each sends n - 1 times its rows,
 * and has n times as much to multiply.
 */
#include "pass/replicate/replicate_private.h"

/* A factor has a row for each of the batch, so that those of all workers go one after the other. */
const char *replicate_find_product(const struct replicator *r, struct edge edge,
                                   struct gradient_product *product)
{
    const struct node *gradient = graph_node(r->from, edge.node);
    if (!has(r, gradient->id, FACT_MARKED))
        return "it is no gradient";
    if (*replicate_role(gradient))
        return "it is of some rows of a table";
    const struct node *made = graph_node(r->from, gradient->inputs[0].node);
    if (!made->op->def->sums_rows)
        return "it is no product of two matrices";
    if (!made->op->def->sums_rows(made))
        return "its factors have no row for each of the batch";
    *product = (struct gradient_product){edge, made->inputs[0], made->inputs[1], made};
    return NULL;
}

static double edge_bytes(const struct replicator *r, struct edge edge)
{
    enum dtype type = graph_node(r->from, edge.node)->outputs[edge.slot].type;
    return replicate_elements(r, edge) * (double)dtype_bytes(type);
}

struct replicate_way replicate_factors_way(const struct replicator *r, int n, struct cost_way way,
                                           const struct gradient_product *product)
{
    double bytes = (n - 1) * (edge_bytes(r, product->left) + edge_bytes(r, product->right));
    return (struct replicate_way){bytes, way.latency + way.per_byte * bytes +
                                             n * replicate_product_ns(r, product->node)};
}
