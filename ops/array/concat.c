/* SPDX-License-Identifier: Apache-2.0
 *
 * Joining and splitting along an existing dimension.
 */
#include <inttypes.h>

#include "base/memory.h"
#include "graph/op_cost.h"
#include "ops/array/build.h"
#include "ops/lacking.h"

/* ---- Concat ---- */

/* Merges dimension k of input i into what is known. */
static int merge_dim(struct infer *infer, int i, int k, bool joined)
{
    int64_t dim = infer_shape(infer, i)->dims[k], *out = &infer->out[0].dims[k];
    if (joined) {
        if (*out < 0 || dim < 0)
            *out = SHAPE_UNKNOWN;
        else if (__builtin_add_overflow(*out, dim, out))
            return infer_fail(infer, "the result is too large");
    } else if (*out < 0) {
        *out = dim;
    } else if (dim >= 0 && dim != *out) {
        return infer_fail(infer, "values differ in dimension %d: %" PRId64 " and %" PRId64, k, *out,
                          dim);
    }
    return 0;
}

static int concat_shape(struct infer *infer)
{
    int first = -1, axis;
    for (int i = 1; i < infer->n_in; i++) {
        int rank = infer_shape(infer, i)->rank;
        if (rank >= 0 && first < 0)
            first = i;
        if (rank >= 0 && rank != infer_shape(infer, first)->rank)
            return infer_fail(infer, "values must have the same rank, not %s and %s",
                              shape_text(infer_shape(infer, first)),
                              shape_text(infer_shape(infer, i)));
    }
    int rank = first < 0 ? -1 : infer_shape(infer, first)->rank;
    if (rank == 0)
        return infer_fail(infer, "scalars cannot be joined: use Pack");
    int code = infer_axis(infer, 0, rank, &axis);
    infer->out[0] = axis < 0 ? shape_unknown(rank) : *infer_shape(infer, first);
    for (int i = 1; axis >= 0 && !code && i < infer->n_in; i++) {
        if (infer_shape(infer, i)->rank < 0)
            infer->out[0].dims[axis] = SHAPE_UNKNOWN;
        for (int k = 0; i != first && !code && k < rank && infer_shape(infer, i)->rank >= 0; k++)
            code = merge_dim(infer, i, k, k == axis);
    }
    return code;
}

static bool concat_value(const struct infer *infer, struct shape *value)
{
    return infer_value_joined(infer, 1, value);
}

/* Returns whether all parts are statically known to be equally long, so that one Split suffices. */
static bool equal_parts(const struct grad *g, int axis)
{
    int64_t length = -1;
    for (int i = 1; i < g->node->n_inputs; i++) {
        const struct shape *s = build_shape(&g->b, grad_input(g, i));
        if (s->rank <= axis || s->dims[axis] < 0 || (i > 1 && s->dims[axis] != length))
            return false;
        length = s->dims[axis];
    }
    return true;
}

static void concat_gradient(struct grad *g)
{
    int64_t value;
    int axis, rank = build_shape(&g->b, g->out[0])->rank, n = g->node->n_inputs - 1;
    if (n == 1)
        g->in[1] = g->out[0];
    else if (array_constant(&g->b, grad_input(g, 0), &value, 1) == 1 && rank > 0 &&
             shape_axis(value, rank, &axis) && equal_parts(g, axis)) {
        struct attr attr = {"num_split", attr_int(n)};
        struct edge inputs[] = {grad_input(g, 0), g->out[0]};
        struct edge parts = build_op(&g->b, "Split", inputs, 2, &attr, 1);
        for (int i = 0; i < n && edge_exists(parts); i++)
            g->in[i + 1] = build_slot(parts, i);
    } else {
        struct edge *edges = mem_array((size_t)n + 1, sizeof *edges);
        edges[0] = grad_input(g, 0);
        for (int i = 0; i < n; i++)
            edges[i + 1] = array_shape(&g->b, grad_input(g, i + 1), INT32);
        struct edge offsets = build_op(&g->b, "ConcatOffset", edges, n + 1, NULL, 0);
        for (int i = 0; i < n && edge_exists(offsets); i++) {
            struct edge slice[] = {g->out[0], build_slot(offsets, i), edges[i + 1]};
            g->in[i + 1] = build_op(&g->b, "Slice", slice, 3, NULL, 0);
        }
        mem_free(edges);
    }
}

#define PARTS(op, ...)                                                                             \
    const struct op_def op_##op = {.name = #op, .cost = cost_elements, __VA_ARGS__}

PARTS(Concat, .inputs = "concat_dim: int32, values: N*T", .outputs = "output: T",
      .attrs = "T: numeric|bool, N: int >= 2", .doc = "Tensors joined along a dimension.",
      .detail = "They agree in all other dimensions."
                "\n" NO_STRINGS,
      .value = concat_value, .half = HALF_CLEAR, .shape = concat_shape,
      .gradient = concat_gradient);

static int offset_shape(struct infer *infer)
{
    int code = infer_scalar(infer, 0);
    for (int i = 1; !code && i < infer->n_in; i++) {
        infer->out[i - 1] = *infer_shape(infer, i);
        code = infer_vector(infer, i);
    }
    return code;
}

PARTS(ConcatOffset, .inputs = "concat_dim: int32, shape: N*int32", .outputs = "offset: N*int32",
      .attrs = "N: int >= 2",
      .doc = "Where tensors of these shapes begin in what Concat makes of them.",
      .flags = OP_NO_GRADIENT, .shape = offset_shape,
      .no_gradient = "its result depends on shapes only");

/* ---- Split ---- */

static int split_shape(struct infer *infer)
{
    int axis, code = infer_rank_at_least(infer, 1, 1);
    const struct shape *in = infer_shape(infer, 1);
    if (code || (code = infer_axis(infer, 0, in->rank, &axis)))
        return code;
    struct shape part = axis < 0 ? shape_unknown(in->rank) : *in;
    if (axis >= 0 && part.dims[axis] >= 0) {
        if (part.dims[axis] % infer->n_out)
            return infer_fail(infer, "dimension %d of %s cannot be split into %d equal parts", axis,
                              shape_text(in), infer->n_out);
        part.dims[axis] /= infer->n_out;
    }
    for (int i = 0; i < infer->n_out; i++)
        infer->out[i] = part;
    return 0;
}

static void split_gradient(struct grad *g)
{
    int n = g->node->n_outputs;
    struct edge *edges = mem_array((size_t)n + 1, sizeof *edges);
    struct attr attr = {"N", attr_int(n)};
    edges[0] = grad_input(g, 0);
    for (int i = 0; i < n; i++)
        edges[i + 1] = grad_out_or_zeros(g, i);
    g->in[1] = n == 1 ? edges[1] : build_op(&g->b, "Concat", edges, n + 1, &attr, 1);
    mem_free(edges);
}

PARTS(Split, .inputs = "split_dim: int32, value: T", .outputs = "output: num_split*T",
      .attrs = "T: numeric|bool, num_split: int >= 1",
      .doc = "A tensor cut into equal parts along a dimension.", .detail = NO_STRINGS,
      .half = HALF_CLEAR, .shape = split_shape, .gradient = split_gradient);
