/* SPDX-License-Identifier: Apache-2.0
 *
 * Large gradients of products among workers without shards: each is made, summed and used some rows
 * at a time. Two values of a piece are kept where a gradient and its sum would be, and the first
 * rows are on their way while others are computed. A piece is made when one before it has been
 * used, so that they never are all there; what does not depend on them goes on meanwhile.
 */
#include "pass/replicate/replicate_private.h"

#include "graph/update_rows.h"
#include "pass/slice/slice.h"

#define PIECE_BYTES ((int64_t)8 << 20)
#define PIECE_ROWS 64  /* a piece has a multiple of them: blocks of matrices stay whole */
#define PIECES_AHEAD 2 /* that are made before the first one has been used */

static int count_uses(const struct replicator *r, int id)
{
    int n = 0;
    graph_each(node, r->from) {
        for (int k = 0; k < node->n_inputs + node->n_controls; k++)
            n += node_dependency(node, k).node == id;
    }
    return n;
}

/* The update that takes the gradient; NULL: none does, or it is of a variable that is to be cut. */
static const struct node *update_by(const struct replicator *r, struct edge gradient)
{
    graph_each(node, r->from) {
        int input = node->op->def->descent.gradient;
        if (input && edge_equal(node->inputs[input], gradient) && has(r, node->id, FACT_UPDATE) &&
            !node_attr(graph_node(r->from, node->inputs[0].node), SLICE_WANTED))
            return node;
    }
    return NULL;
}

/* Rows of a piece; 0: the gradient stays whole. */
static int64_t rows_of_piece(const struct replicator *r, const struct node_output *gradient)
{
    int64_t each = r->options->piece_bytes ? r->options->piece_bytes : PIECE_BYTES;
    int64_t bytes = shape_bytes(&gradient->shape, gradient->type);
    if (each == REPLICATE_WHOLE || bytes / 2 < each)
        return 0;
    int64_t rows = each / (bytes / gradient->shape.dims[0]) / PIECE_ROWS * PIECE_ROWS;
    rows = rows < PIECE_ROWS ? PIECE_ROWS : rows;
    return rows < gradient->shape.dims[0] ? rows : 0;
}

static int64_t find_rows(const struct replicator *r, struct edge gradient,
                         struct gradient_product *product)
{
    const struct node *node = graph_node(r->from, gradient.node);
    int64_t rows = rows_of_piece(r, &node->outputs[gradient.slot]);
    bool is_others = r->options->delay || r->options->by_device;
    if (!rows || is_others || replicate_find_product(r, gradient, product) ||
        !update_by(r, gradient) || count_uses(r, gradient.node) > 1 ||
        count_uses(r, product->node->id) > 1)
        return 0;
    return rows;
}

static struct edge multiply_piece(struct replicator *r, const char *name,
                                  const struct gradient_product *product, int64_t first, int64_t n)
{
    /* Some rows of the product are made of some columns of the left factor. */
    struct edge inputs[] = {
        replicate_edge(r, product->left),
        replicate_vector(r, replicate_text(r, name, "begin"), (const int64_t[]){0, first}, 2),
        replicate_vector(r, replicate_text(r, name, "size"), (const int64_t[]){-1, n}, 2)};
    struct edge columns = replicate_node(r, "Slice", inputs, 3, NULL, 0, "%s/columns", name);
    const struct edge factors[] = {columns, replicate_edge(r, product->right)};
    struct node_spec spec = rewrite_spec_like(product->node);
    spec.inputs = factors;
    spec.n_inputs = 2;
    spec.device = replicate_device(r, product->node, WORKER_DEVICE);
    spec.file = NULL;
    return replicate_add(r, spec, "%s/product", name);
}

bool replicate_is_in_pieces(const struct replicator *r, struct edge gradient)
{
    struct gradient_product product;
    return find_rows(r, gradient, &product) > 0;
}

int replicate_reduce_pieces(struct replicator *r, struct edge gradient, int priority)
{
    struct gradient_product product;
    int64_t each = find_rows(r, gradient, &product);
    int64_t rows = graph_node(r->from, gradient.node)->outputs[gradient.slot].shape.dims[0];
    for (int64_t first = 0; first < rows && !r->err->code; first += each) {
        const struct node *node = graph_node(r->from, product.gradient.node);
        const char *name = arena_printf(&r->to->arena, ALLREDUCE_SCOPE "%s/rows_%lld", node->name,
                                        (long long)first);
        const char *reduction =
            replicate_reduction(node, node->outputs[product.gradient.slot].type);
        struct gradient_piece piece = {
            product.gradient,
            multiply_piece(r, name, &product, first, rows - first < each ? rows - first : each),
            first, EDGE_NONE};
        struct bucket bucket = {.priority = priority};
        if (r->err->code)
            continue;
        replicate_put(r, &bucket,
                      (struct bucket_value){product.gradient, piece.made, reduction, FOR_PIECES});
        if (!replicate_reduce(r, name, &bucket)) {
            piece.sum = r->reduced.items[r->reduced.n - 1].value;
            vec_push_in(&r->arena, &r->pieces, piece);
        }
    }
    return r->err->code;
}

/* ---- updates ---- */

/* What is propagated further back is made of the variable, too: the update comes behind it, as what
 * changes while somebody has it is copied. With the gradient it is there in each step. */
static void wait_for_readers(struct replicator *r, const struct node *update, struct node *copy)
{
    const struct node *variable = graph_node(r->from, update->inputs[0].node);
    struct gradient_product product;
    if (!find_rows(r, update->inputs[update->op->def->descent.gradient], &product))
        return;
    graph_each(node, r->from) {
        bool is_back = false, is_reader = false;
        for (int k = 0; k < node->n_inputs; k++) {
            is_back |= edge_equal(node->inputs[k], product.right);
            const struct node *read = graph_node(r->from, node->inputs[k].node);
            is_reader |= read == variable ||
                         (node_is(read, "Identity") && read->inputs[0].node == variable->id);
        }
        if (is_back && is_reader && !node->n_controls && has(r, node->id, FACT_NEEDED) &&
            !has(r, node->id, FACT_AFTER))
            graph_add_control(r->to, copy, r->copy[node->id]);
    }
}

bool replicate_copy_pieces(struct replicator *r, const struct node *node)
{
    const struct gradient_piece *pieces = NULL; /* they follow each other */
    int input = node->op->def->descent.gradient, n = 0;
    for (size_t i = 0; input && i < r->pieces.n; i++) {
        bool is_one = edge_equal(r->pieces.items[i].gradient, node->inputs[input]);
        if (is_one && !n)
            pieces = &r->pieces.items[i];
        n += is_one;
    }
    for (int i = 0; i < n; i++) {
        /* The last one has the update's name, and comes when the others are over. */
        const struct gradient_piece *piece = &pieces[i];
        const char *name =
            arena_printf(&r->to->arena, "%s/rows_%lld", node->name, (long long)piece->first_row);
        struct node_spec spec = {.name = i + 1 == n ? node->name : replicate_name(r, name),
                                 .device = replicate_device(r, node, WORKER_DEVICE)};
        struct attr first = {UPDATE_FIRST_ROW, attr_int(piece->first_row)};
        struct edge *inputs = arena_array(&r->arena, (size_t)node->n_inputs, sizeof *inputs);
        for (int j = 0; j < node->n_inputs; j++)
            inputs[j] = j == node->op->def->descent.gradient
                            ? piece->sum
                            : replicate_reduced(r, node, node->inputs[j]);
        struct node *copy = replicate_add_copy(r, node, &spec, inputs);
        for (int j = 0; j < node->n_controls; j++)
            graph_add_control(
                r->to, copy,
                replicate_edge(r, (struct edge){node->controls[j], CONTROL_SLOT}).node);
        graph_set_attr(r->to, copy, &first, r->err);

        if (i)
            graph_add_control(r->to, copy, r->copy[node->id]);
        else
            wait_for_readers(r, node, copy);
        r->copy[node->id] = copy->id;
        if (i + PIECES_AHEAD < n)
            graph_add_control(r->to, graph_node(r->to, pieces[i + PIECES_AHEAD].made.node),
                              copy->id);
    }
    return n > 0;
}
