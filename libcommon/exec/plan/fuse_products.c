/* SPDX-License-Identifier: Apache-2.0
 *
 * Products with the bias and activation behind them, found from the products: each becomes one
 * node, named as its last op.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "exec/plan/fuse_private.h"

/* ---- which ops ---- */

static const struct kernel_row *row_of(const struct fuse_groups *g, const struct node *node)
{
    return kernel_find(g->options->kernels, node, g->options->device);
}

/* The op that does what comes behind the product, too; NULL: it is no product. */
static const char *whole_op(const struct fuse_groups *g, const struct node *node)
{
    const struct kernel_row *row = fuse_can_go(g, node) ? row_of(g, node) : NULL;
    bool exists = row && row->with_epilogue &&
                  kernel_exists(g->options->kernels, row->with_epilogue, g->options->device);
    return exists ? row->with_epilogue : NULL;
}

/* Attributes that both have, as where the channels are, say the same. */
static bool agree(const struct node *product, const struct node *node)
{
    for (int i = 0; i < node->n_attrs; i++) {
        const struct attr_value *its = node_attr(product, node->attrs[i].name);
        if (its && !attr_equal(its, &node->attrs[i].value))
            return false;
    }
    return true;
}

static bool has_row(const struct fuse_groups *g, const struct node *node, bool is_first)
{
    const struct kernel_row *row = row_of(g, node);
    if (!row || !(row->flags & KERNEL_EPILOGUE))
        return false;
    /* Right behind the product it has a pass over memory in any case, as part of a chain then. */
    return !is_first || !(row->flags & KERNEL_ELEMENTWISE);
}

/* Whether `node`, which takes what `last` has made, can be computed with the product. */
static bool can_follow(const struct fuse_groups *g, const struct node *product,
                       const struct node *last, const struct node *node)
{
    return g->uses[last->id] == 1 && !g->bound[last->id] && fuse_can_go(g, node) &&
           node->inputs[0].node == last->id &&
           shape_equal(&node->outputs[0].shape, &last->outputs[0].shape) &&
           fuse_same_place(product, node) && !fuse_reads_variables(g, last) &&
           agree(product, node) && has_row(g, node, last == product);
}

/* ---- groups ---- */

/* By node: the one that takes its output, where there is one. */
static const struct node **find_takers(struct fuse_groups *g)
{
    const struct node **takers = arena_array(&g->memory, g->graph->nodes.n + 1, sizeof *takers);
    for (size_t i = 0; i < g->graph->nodes.n; i++) {
        const struct node *node = graph_node(g->graph, (int)i);
        for (int k = 0; k < node->n_inputs; k++)
            takers[node->inputs[k].node] = node;
    }
    return takers;
}

static void claim(struct fuse_groups *g, const struct node *product,
                  const struct node *const *takers)
{
    const struct node *last = product, *next;
    while ((next = takers[last->id]) && can_follow(g, product, last, next)) {
        g->fused->n_gone++;
        last = next;
    }
    for (const struct node *node = product; last != product; node = takers[node->id]) {
        g->end[node->id] = last->id;
        if (node == last)
            break;
    }
}

/* ---- their nodes ---- */

struct product_group {
    const struct node *product;
    VEC(const char *) ops; /* behind it */
    VEC(struct edge) inputs;
};

static void collect(const struct fuse_groups *g, const struct node *node,
                    struct product_group *group)
{
    const struct node *before = node->n_inputs ? graph_node(g->graph, node->inputs[0].node) : NULL;
    bool is_product = !before || g->end[before->id] != g->end[node->id];
    if (is_product)
        group->product = node;
    else
        collect(g, before, group);
    for (int k = is_product ? 0 : 1; k < node->n_inputs; k++)
        vec_push(&group->inputs, node->inputs[k]);
    if (!is_product)
        vec_push(&group->ops, node->op->def->name);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct attr *)a)->name, ((const struct attr *)b)->name);
}

/* The product's, and those that say what follows, in the graph's memory. */
static struct attr *describe(struct arena *arena, const struct product_group *group)
{
    const struct node *product = group->product;
    int n = (int)group->ops.n, n_args = (int)group->inputs.n - product->n_inputs;
    const char **ops = arena_copy(arena, group->ops.items, group->ops.n * sizeof *ops);
    size_t n_attrs = (size_t)product->n_attrs;
    struct attr *attrs = arena_array(arena, n_attrs + 2, sizeof *attrs);
    memcpy(attrs, product->attrs, n_attrs * sizeof *attrs);
    attrs[n_attrs] = (struct attr){"N", attr_int(n_args)};
    attrs[n_attrs + 1] =
        (struct attr){"epilogue", {.kind = ATTR_LIST_STRING, .n = n, .strings = ops}};
    qsort(attrs, n_attrs + 2, sizeof *attrs, compare_names);
    return attrs;
}

static void describe_product(struct fuse_groups *g, const struct node *end, struct node_spec *spec)
{
    struct arena *arena = &g->to->arena;
    struct product_group group = {NULL, VEC_INIT, VEC_INIT};
    collect(g, end, &group);
    spec->op = whole_op(g, group.product);
    spec->inputs = arena_copy(arena, group.inputs.items, group.inputs.n * sizeof(struct edge));
    spec->n_inputs = (int)group.inputs.n;
    spec->attrs = describe(arena, &group);
    spec->n_attrs = group.product->n_attrs + 2;
    vec_release(&group.ops);
    vec_release(&group.inputs);
}

void fuse_products(const struct graph *graph, const struct fuse_options *options,
                   struct fused *fused)
{
    struct fuse_groups g;
    fuse_groups_init(&g, graph, options, fused);
    const struct node **takers = find_takers(&g);
    for (size_t i = 0; i < graph->nodes.n; i++)
        if (whole_op(&g, graph_node(graph, (int)i)))
            claim(&g, graph_node(graph, (int)i), takers);
    if (fused->n_gone)
        fuse_rewrite(&g, describe_product);
    fuse_groups_release(&g);
}
