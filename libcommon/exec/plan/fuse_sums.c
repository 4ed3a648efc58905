/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of products, as the gradient of a matrix that several steps multiply by: each becomes one
 * product over the inner axes side by side, named as the sum. One tensor may be in the sum, too:
 * the product is added to it.
 */
#include "exec/plan/fuse_private.h"

/* The op that adds such products; NULL: it is none, or somebody else wants it. */
static const char *summing_op(const struct fuse_groups *g, const struct node *node)
{
    bool is_free = g->uses[node->id] == 1 && fuse_can_go(g, node) && !fuse_reads_variables(g, node);
    const struct kernel_row *row =
        is_free ? kernel_find(g->options->kernels, node, g->options->device) : NULL;
    return row ? row->with_sum : NULL;
}

static const struct node *input_node(const struct fuse_groups *g, const struct node *sum, int i)
{
    return graph_node(g->graph, sum->inputs[i].node);
}

/* Puts the sum's products into its group. Returns how many there are. */
static int group_products(struct fuse_groups *g, const struct node *sum)
{
    const struct node *first = NULL;
    int n = 0;
    for (int i = 0; i < sum->n_inputs; i++) {
        const struct node *node = input_node(g, sum, i);
        if (summing_op(g, node) && fuse_same_place(node, sum) &&
            shape_equal(&node->outputs[0].shape, &sum->outputs[0].shape) &&
            (!first || fuse_attrs_agree(node, first))) {
            first = first ? first : node;
            g->end[node->id] = sum->id;
            n++;
        }
    }
    return n;
}

/* The tensor, if there is one, then all left operands, then all right ones. Returns a product. */
static const struct node *list_inputs(const struct fuse_groups *g, const struct node *sum,
                                      fuse_edges *inputs)
{
    const struct node *product = NULL;
    for (int side = -1; side < 2; side++) {
        for (int i = 0; i < sum->n_inputs; i++) {
            const struct node *node = input_node(g, sum, i);
            bool is_product = g->end[node->id] == sum->id;
            if (is_product == (side >= 0))
                vec_push(inputs, is_product ? node->inputs[side] : sum->inputs[i]);
            product = is_product ? node : product;
        }
    }
    return product;
}

/* Operands are kept until all are there: no more than the products would have taken. With a single
 * one, which is made when the sum is, those that others take may be there in any case. */
static bool is_worth(const struct fuse_groups *g, const struct node *sum, int n)
{
    fuse_edges inputs = VEC_INIT;
    int64_t kept = 0, count = shape_count(&sum->outputs[0].shape);
    int n_others = sum->n_inputs - n;
    bool fits = n && n_others <= 1 && sum->n_inputs > 1;
    list_inputs(g, sum, &inputs);
    for (int i = 0; fits && i < (int)inputs.n; i++) {
        const struct shape *shape = &fuse_source(g, inputs.items[i])->shape;
        fits =
            shape_is_known(shape) && (i >= n_others || shape_equal(shape, &sum->outputs[0].shape));
        if (fits && i >= n_others && (n > 1 || g->uses[inputs.items[i].node] == 1))
            kept += shape_count(shape);
    }
    vec_release(&inputs);
    return fits && kept <= n * count;
}

static void claim(struct fuse_groups *g, const struct node *sum)
{
    int n = group_products(g, sum);
    bool is_group = is_worth(g, sum, n);
    for (int i = 0; i < sum->n_inputs && !is_group; i++)
        if (g->end[sum->inputs[i].node] == sum->id)
            g->end[sum->inputs[i].node] = -1;
    if (is_group) {
        g->end[sum->id] = sum->id;
        g->fused->n_gone += n;
    }
}

static void describe(struct fuse_groups *g, const struct node *sum, struct node_spec *spec)
{
    fuse_edges inputs = VEC_INIT;
    const struct node *product = list_inputs(g, sum, &inputs);
    int n = (int)inputs.n - sum->n_inputs;
    const struct attr more[] = {{"M", attr_int(sum->n_inputs - n)}, {"N", attr_int(n)}};
    spec->op = summing_op(g, product);
    fuse_set_attrs(g, product, more, 2, spec);
    fuse_take_inputs(g, &inputs, spec);
}

void fuse_sums(const struct graph *graph, const struct fuse_options *options, struct fused *fused)
{
    struct fuse_groups g;
    bool has_order = fuse_groups_init(&g, graph, options, fused);
    for (size_t i = 0; has_order && i < graph->nodes.n; i++)
        if (node_has(graph_node(graph, (int)i), OP_SUMS) &&
            fuse_can_go(&g, graph_node(graph, (int)i)))
            claim(&g, graph_node(graph, (int)i));
    if (fused->n_gone)
        fuse_rewrite(&g, describe);
    fuse_groups_release(&g);
}
