/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients that are made of all workers' factors: by each worker, or by the shard.
 */
#include <string.h>

#include "graph/group.h"
#include "pass/replicate/replicate_private.h"

/* The rows of some steps are kept in one variable. */
static bool can_keep(const struct replicator *r, struct edge factor)
{
    const struct shape *shape = &graph_node(r->from, factor.node)->outputs[factor.slot].shape;
    return r->steps < 2 || (shape->rank == 2 && shape->dims[1] >= 0);
}

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
    if (!can_keep(r, made->inputs[0]) || !can_keep(r, made->inputs[1]))
        return "how long its factors' rows are is not known";
    *product = (struct gradient_product){
        .gradient = edge, .left = made->inputs[0], .right = made->inputs[1], .node = made};
    return NULL;
}

/* The way of factors. Among workers each sends its rows n - 1 times, and multiplies those of n.
 * Shards get the rows of all, and share in the products. */
struct replicate_way replicate_factors_way(const struct replicator *r, int n, struct cost_way way,
                                           const struct gradient_product *product)
{
    double products = n * replicate_node_ns(r, product->node);
    if (replicate_pushes(r)) {
        double bytes = replicate_bytes(r, product->left) + replicate_bytes(r, product->right);
        return (struct replicate_way){bytes, way.latency + way.per_byte * bytes +
                                                 replicate_shards_ns(r, products)};
    }
    struct replicate_way left = replicate_gather_way(r, n, way, replicate_bytes(r, product->left));
    struct replicate_way right =
        replicate_gather_way(r, n, way, replicate_bytes(r, product->right));
    return (struct replicate_way){left.bytes + right.bytes, left.ns + right.ns - way.latency +
                                                                replicate_workers_ns(r, products)};
}

/* Its attributes, in the group of a variable, if there is one. */
static int attrs_of(struct replicator *r, const struct node *node, const char *variable,
                    struct attr *attrs)
{
    int n = 0;
    for (int i = 0; i < node->n_attrs; i++)
        if (!variable || strcmp(node->attrs[i].name, "_class") != 0)
            attrs[n++] = node->attrs[i];
    if (variable)
        attrs[n++] = group_attr(&r->to->arena, variable);
    return n;
}

struct edge replicate_add_product(struct replicator *r, const struct gradient_product *product,
                                  const struct edge factors[2], const char *variable)
{
    const char *name = replicate_edge_text(r, product->gradient, "product");
    if (!variable)
        name = arena_printf(&r->to->arena, ALLREDUCE_SCOPE "%s",
                            graph_node(r->from, product->gradient.node)->name);
    struct attr *attrs =
        arena_array(&r->to->arena, (size_t)product->node->n_attrs + 1, sizeof *attrs);
    struct node_spec spec = {
        .name = replicate_name(r, name),
        .attrs = attrs,
        .n_attrs = attrs_of(r, product->node, variable, attrs),
        .device = replicate_device(r, product->node, variable ? SHARD_DEVICE : WORKER_DEVICE)};
    const struct node *made = replicate_add_copy(r, product->node, &spec, factors);
    if (r->options->note)
        r->options->note(r->options->context, made->name, made->device);
    return (struct edge){made->id, 0};
}
