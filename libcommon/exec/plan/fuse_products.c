/* SPDX-License-Identifier: Apache-2.0
 *
 * Products with the bias and activation behind them, found from the products: each becomes one
 * node, named as its last op.
 */
#include "base/memory.h"
#include "exec/plan/fuse_private.h"

/* ---- which ops ---- */

/* The op that also does what follows the product; NULL: the node is no such product. */
static const char *whole_op(const struct fuse_groups *g, const struct node *node)
{
    const struct kernel_row *row = fuse_can_go(g, node) ? fuse_row(g, node) : NULL;
    return row ? fuse_known_op(g, row->with_epilogue) : NULL;
}

static bool has_row(const struct fuse_groups *g, const struct node *node, bool is_first)
{
    const struct kernel_row *row = fuse_row(g, node);
    if (!row || !(row->flags & KERNEL_EPILOGUE))
        return false;
    /* Directly behind the product it costs a pass over memory anyway, and can join a chain. */
    return !is_first || !(row->flags & KERNEL_ELEMENTWISE);
}

/* Returns whether `node`, which takes the output of `last`, can be computed with the product. */
static bool can_follow(const struct fuse_groups *g, const struct node *product,
                       const struct node *last, const struct node *node)
{
    return g->uses[last->id] == 1 && !g->bound[last->id] && fuse_can_go(g, node) &&
           node->inputs[0].node == last->id &&
           shape_equal(&node->outputs[0].shape, &last->outputs[0].shape) &&
           fuse_same_place(product, node) && !fuse_reads_variables(g, last) &&
           fuse_attrs_agree(product, node) && has_row(g, node, last == product);
}

/* ---- groups ---- */

static void claim(struct fuse_groups *g, const struct node *product)
{
    const struct node *last = product, *next;
    while ((next = g->taker[last->id]) && can_follow(g, product, last, next)) {
        g->n_gone++;
        last = next;
    }
    for (const struct node *node = product; last != product; node = g->taker[node->id]) {
        g->end[node->id] = last->id;
        if (node == last)
            break;
    }
}

/* ---- their nodes ---- */

struct product_group {
    const struct node *product;
    VEC(const char *) ops; /* behind it */
    fuse_edges inputs;
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

void fuse_products_describe(struct fuse_groups *g, const struct node *end, struct node_spec *spec)
{
    struct product_group group = {NULL, VEC_INIT, VEC_INIT};
    collect(g, end, &group);
    const char **ops = arena_copy(&g->to->arena, group.ops.items, group.ops.n * sizeof *ops);
    const struct attr more[] = {
        {"N", attr_int((int)group.inputs.n - group.product->n_inputs)},
        {"epilogue", {.kind = ATTR_LIST_STRING, .n = (int)group.ops.n, .strings = ops}}};
    spec->op = whole_op(g, group.product);
    fuse_set_attrs(g, group.product, more, 2, spec);
    fuse_take_inputs(g, &group.inputs, spec);
    vec_release(&group.ops);
}

void fuse_products_find(struct fuse_groups *g)
{
    for (size_t i = 0; i < g->graph->nodes.n; i++)
        if (whole_op(g, graph_node(g->graph, (int)i)))
            claim(g, graph_node(g->graph, (int)i));
}
