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

void fuse_products_describe(struct fuse_groups *g, const struct node *end, struct node_spec *spec)
{
    struct arena *arena = &g->to->arena;
    VEC(const char *) ops = VEC_INIT; /* behind the product */
    fuse_edges inputs = VEC_INIT;
    const struct node *product = end, *node;
    while (product->n_inputs && g->end[product->inputs[0].node] == end->id)
        product = graph_node(g->graph, product->inputs[0].node);
    for (int k = 0; k < product->n_inputs; k++)
        vec_push(&inputs, product->inputs[k]);
    for (node = product; node != end;) {
        node = g->taker[node->id];
        vec_push_in(arena, &ops, node->op->def->name);
        for (int k = 1; k < node->n_inputs; k++)
            vec_push(&inputs, node->inputs[k]);
    }
    const struct attr more[] = {
        {"N", attr_int((int)inputs.n - product->n_inputs)},
        {"epilogue", {.kind = ATTR_LIST_STRING, .n = (int)ops.n, .strings = ops.items}}};
    spec->op = whole_op(g, product);
    fuse_set_attrs(g, product, more, 2, spec);
    fuse_take_inputs(g, &inputs, spec);
}

void fuse_products_find(struct fuse_groups *g)
{
    graph_each(node, g->graph) {
        if (whole_op(g, node))
            claim(g, node);
    }
}
