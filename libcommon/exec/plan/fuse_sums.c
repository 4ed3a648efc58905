/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of products, such as the gradient of a matrix that several time steps multiply by: each
 * becomes one product over the concatenated inner axes, named as the sum, to which one further
 * tensor may be added. A product that a variable is updated by becomes part of the update, which
 * then makes the gradient some rows at a time: it is not written to memory, nor read again.
 */
#include <string.h>

#include "exec/plan/fuse_private.h"
#include "graph/access_nodes.h"

/* The op that adds such products; NULL: the node is none, or has other uses. */
static const char *summing_op(const struct fuse_groups *g, const struct node *node)
{
    bool is_free = g->uses[node->id] == 1 && fuse_can_go(g, node) && !fuse_reads_variables(g, node);
    const struct kernel_row *row = is_free ? fuse_row(g, node) : NULL;
    return row ? row->with_sum : NULL;
}

/* Puts the sum's products into its group. Returns their number. */
static int group_products(struct fuse_groups *g, const struct node *sum)
{
    const struct node *first = NULL;
    int n = 0;
    for (int i = 0; i < sum->n_inputs; i++) {
        const struct node *node = graph_node(g->graph, sum->inputs[i].node);
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
            const struct node *node = graph_node(g->graph, sum->inputs[i].node);
            bool is_product = g->end[node->id] == sum->id;
            if (is_product == (side >= 0))
                vec_push(inputs, is_product ? node->inputs[side] : sum->inputs[i]);
            product = is_product ? node : product;
        }
    }
    return product;
}

/* Operands are kept until the sum runs: they must take no more memory than the products would. A
 * single product is made when the sum is, so operands with other consumers are not counted. */
static bool is_worth(const struct fuse_groups *g, const struct node *sum, int n)
{
    fuse_edges inputs = VEC_INIT;
    int64_t kept = 0, count = shape_count(&sum->outputs[0].shape);
    int n_others = sum->n_inputs - n;
    bool fits = n && n_others <= 1 && sum->n_inputs > 1;
    list_inputs(g, sum, &inputs);
    for (int i = 0; fits && i < (int)inputs.n; i++) {
        const struct shape *shape = &graph_output(g->graph, inputs.items[i])->shape;
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
        g->n_gone += n;
    }
}

/* ---- updates by a product ---- */

/* With longer inner axes, multiplying takes so long that tiles cost more than they save. Operands
 * must lie as for a weight's gradient: for others, libraries add in an order that depends on all
 * rows. */
#define INNER_MOST 64

/* The op that is such an update; NULL: none, or the node has marks besides its colocation. */
static const char *updating_op(const struct fuse_groups *g, const struct node *node)
{
    bool fits = fuse_is_update(node) && !fuse_has_marks(node, true);
    const struct kernel_row *row = fits ? fuse_row(g, node) : NULL;
    return row ? row->with_product : NULL;
}

/* Finds by node whether its output may be memory of a variable that the step writes. */
static const bool *find_shown(struct fuse_groups *g)
{
    const int *variable = access_variables(g->graph, &g->memory);
    bool *written = arena_array(&g->memory, g->graph->nodes.n + 1, sizeof *written);
    graph_each(node, g->graph) {
        for (int k = 0; k < node->n_inputs; k++)
            if (node_writes_ref(node, k) && variable[node->inputs[k].node] >= 0)
                written[variable[node->inputs[k].node]] = true;
    }
    return access_shown(g->graph, g->order, variable, written, &g->memory);
}

/* The update reads the operands later than the product would: no write may change them before. */
static bool can_update_by(const struct fuse_groups *g, const struct node *product,
                          const struct node *update, const bool *shown)
{
    bool fits = summing_op(g, product) && fuse_same_place(product, update) &&
                shape_equal(&product->outputs[0].shape, &update->outputs[0].shape);
    for (int i = 0; i < product->n_inputs && fits; i++)
        fits = !shown[product->inputs[i].node] &&
               shape_is_known(&graph_output(g->graph, product->inputs[i])->shape);
    return fits && node_bool(product, "transpose_a") && !node_bool(product, "transpose_b") &&
           graph_output(g->graph, product->inputs[0])->shape.dims[0] <= INNER_MOST;
}

/* The inputs are references, scalars, operands. */
static void describe_update(struct fuse_groups *g, const struct node *update,
                            struct node_spec *spec)
{
    const struct node *product = graph_node(g->graph, fuse_gradient(g, update).node);
    const struct attr_value *nesterov = node_attr(update, "use_nesterov");
    fuse_edges inputs = VEC_INIT;
    int n_refs = 0;
    for (int i = 0; i < update->n_inputs; i++) {
        n_refs += node_takes_ref(update, i);
        if (i != update->op->def->descent.gradient)
            vec_push(&inputs, update->inputs[i]);
    }
    const struct attr more[] = {{"M", attr_int(n_refs - 1)},
                                {"S", attr_int((int64_t)inputs.n - n_refs)},
                                {"rule", attr_string(update->op->def->name)},
                                {"use_nesterov", attr_bool(nesterov && nesterov->b)}};
    vec_push(&inputs, product->inputs[0]);
    vec_push(&inputs, product->inputs[1]);
    spec->op = updating_op(g, update);
    fuse_set_attrs(g, product, more, sizeof more / sizeof *more, spec);
    fuse_take_inputs(g, &inputs, spec);
}

/* ---- both kinds ---- */

void fuse_sums_describe(struct fuse_groups *g, const struct node *sum, struct node_spec *spec)
{
    fuse_edges inputs = VEC_INIT;
    if (updating_op(g, sum)) {
        describe_update(g, sum, spec);
        return;
    }
    const struct node *product = list_inputs(g, sum, &inputs);
    int n = (int)inputs.n - sum->n_inputs;
    const struct attr more[] = {{"M", attr_int(sum->n_inputs - n)}, {"N", attr_int(n)}};
    spec->op = summing_op(g, product);
    fuse_set_attrs(g, product, more, 2, spec);
    fuse_take_inputs(g, &inputs, spec);
}

void fuse_sums_find(struct fuse_groups *g)
{
    const bool *shown = NULL;
    graph_each(node, g->graph) {
        if (updating_op(g, node)) {
            struct edge gradient = fuse_gradient(g, node);
            shown = shown ? shown : find_shown(g);
            if (!can_update_by(g, graph_node(g->graph, gradient.node), node, shown))
                continue;
            g->end[gradient.node] = g->end[node->id] = node->id;
            fuse_claim_gradient(g, node, gradient, node->id);
            g->n_gone++;
        } else if (node_has(node, OP_SUMS) && fuse_can_go(g, node)) {
            claim(g, node);
        }
    }
}
