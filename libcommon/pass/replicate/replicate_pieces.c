/* SPDX-License-Identifier: Apache-2.0
 *
 * Large gradients of products among workers without shards: each is computed, summed and used some
 * rows at a time. Two values of a piece replace a gradient and its sum in memory, and the first
 * rows are sent while others are computed. A piece is computed after an earlier one was used, which
 * limits how many exist at once; nodes that do not depend on pieces run meanwhile.
 */
#include "graph/update_rows.h"
#include "pass/replicate/replicate_reduce.h"
#include "pass/slice/slice.h"

#define PIECE_BYTES ((int64_t)8 << 20)
#define PIECE_ROWS 64  /* pieces have a multiple of it, so that blocks of matrices stay whole */
#define PIECES_AHEAD 2 /* pieces computed before the first has been used */

static int count_uses(const struct replicator *r, int id)
{
    int n = 0;
    graph_each(node, r->from) {
        for (int k = 0; k < node->n_inputs + node->n_controls; k++)
            n += node_dependency(node, k).node == id;
    }
    return n;
}

/* Returns the update that takes the gradient; NULL: none, or its variable is to be partitioned. */
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

int64_t replicate_piece_rows(const struct replicator *r, const struct exchange *x)
{
    const struct node_output *output = x->output;
    int64_t each = r->options->piece_bytes ? r->options->piece_bytes : PIECE_BYTES;
    int64_t bytes = shape_bytes(&output->shape, output->type);
    if (each == REPLICATE_WHOLE || bytes / 2 < each || !x->product || r->options->delay ||
        r->options->by_device || !update_by(r, x->edge) || count_uses(r, x->edge.node) > 1 ||
        count_uses(r, x->product->id) > 1)
        return 0;
    int64_t rows = each / (bytes / output->shape.dims[0]) / PIECE_ROWS * PIECE_ROWS;
    rows = rows < PIECE_ROWS ? PIECE_ROWS : rows;
    return rows < output->shape.dims[0] ? rows : 0;
}

/* Multiplies some columns of the left factor, which gives some rows of the product. */
static struct edge multiply_piece(struct replicator *r, const char *name,
                                  const struct node *product, int64_t first, int64_t n)
{
    struct edge inputs[] = {
        replicate_edge(r, product->inputs[0]),
        replicate_vector(r, replicate_text(r, name, "begin"), (const int64_t[]){0, first}, 2),
        replicate_vector(r, replicate_text(r, name, "size"), (const int64_t[]){-1, n}, 2)};
    struct edge columns = replicate_node(r, "Slice", inputs, 3, NULL, 0, "%s/columns", name);
    const struct edge factors[] = {columns, replicate_edge(r, product->inputs[1])};
    struct node_spec spec = graph_spec_like(product);
    spec.inputs = factors;
    spec.n_inputs = 2;
    spec.device = replicate_device(r, product, WORKER_DEVICE);
    spec.file = NULL;
    return replicate_add(r, spec, "%s/product", name);
}

void replicate_reduce_pieces(struct replicator *r, struct exchange *x, int priority)
{
    int64_t each = x->piece_rows, rows = x->output->shape.dims[0];
    for (int64_t first = 0; first < rows && !r->err->code; first += each) {
        const char *name = arena_printf(&r->to->arena, ALLREDUCE_SCOPE "%s/rows_%lld",
                                        x->node->name, (long long)first);
        int64_t n = rows - first < each ? rows - first : each;
        struct gradient_piece piece = {multiply_piece(r, name, x->product, first, n), first,
                                       EDGE_NONE};
        struct bucket bucket = {.priority = priority};
        replicate_put(r, &bucket, x, (struct bucket_value){piece.made, x->reduction, &piece.sum});
        replicate_reduce(r, name, &bucket);
        vec_push_in(&r->arena, &x->pieces, piece);
    }
}

/* ---- updates ---- */

/* The gradient that is propagated further back also depends on the variable. The update follows it,
 * since a variable that changes while it has readers is copied. Both nodes run in each step. */
static void wait_for_readers(struct replicator *r, const struct exchange *x,
                             const struct node *update, struct node *copy)
{
    const struct node *variable = graph_node(r->from, update->inputs[0].node);
    graph_each(node, r->from) {
        bool is_back = false, is_reader = false;
        for (int k = 0; k < node->n_inputs; k++) {
            is_back |= edge_equal(node->inputs[k], x->product->inputs[1]);
            const struct node *read = graph_node(r->from, node->inputs[k].node);
            is_reader |= read == variable ||
                         (node_is(read, "Identity") && read->inputs[0].node == variable->id);
        }
        if (is_back && is_reader && !node->n_controls && has(r, node->id, FACT_NEEDED) &&
            !has(r, node->id, FACT_AFTER))
            graph_add_control(r->to, copy, r->copy[node->id]);
    }
}

static struct edge in_piece(struct replicator *r, const struct node *reader, struct edge edge,
                            int k)
{
    const struct exchange *x = replicate_exchange(r, edge);
    return x && x->pieces.n ? x->pieces.items[k].sum : replicate_reduced(r, reader, edge);
}

bool replicate_copy_pieces(struct replicator *r, const struct node *node)
{
    int input = node->op->def->descent.gradient;
    const struct exchange *x = input ? replicate_exchange(r, node->inputs[input]) : NULL;
    int n = x ? (int)x->pieces.n : 0;
    for (int i = 0; i < n; i++) {
        /* The last one has the update's name, and comes after the others. */
        const struct gradient_piece *piece = &x->pieces.items[i];
        const char *name =
            arena_printf(&r->to->arena, "%s/rows_%lld", node->name, (long long)piece->first_row);
        struct node_spec spec = {.name = i + 1 == n ? node->name : replicate_name(r, name),
                                 .device = replicate_device(r, node, WORKER_DEVICE)};
        struct attr first = {UPDATE_FIRST_ROW, attr_int(piece->first_row)};
        struct node *copy = replicate_add_mapped(r, node, &spec, in_piece, i);
        graph_set_attr(r->to, copy, &first, r->err);
        if (i)
            graph_add_control(r->to, copy, r->copy[node->id]);
        else
            wait_for_readers(r, x, node, copy);
        r->copy[node->id] = copy->id;
        if (i + PIECES_AHEAD < n)
            replicate_wait(r, x->pieces.items[i + PIECES_AHEAD].made, copy->id);
    }
    return n > 0;
}
