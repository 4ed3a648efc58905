/* SPDX-License-Identifier: Apache-2.0
 *
 * Joining and splitting along a new dimension.
 */
#include <inttypes.h>

#include "base/memory.h"
#include "graph/op_cost.h"
#include "ops/array/build.h"
#include "ops/array/reshape.h"
#include "ops/lacking.h"

static int pack_shape(struct infer *infer)
{
    struct shape all = SHAPE_ANY;
    int64_t axis = node_int(infer->node, "axis");
    for (int i = 0; i < infer->n_in; i++)
        if (!shape_merge(&all, infer_shape(infer, i), &all))
            return infer_fail(infer, "values must have the same shape, not %s and %s",
                              shape_text(&all), shape_text(infer_shape(infer, i)));
    if (all.rank < 0)
        return 0;
    return reshape_insert(&all, axis, infer->n_in, "axis", &infer->out[0], infer->err);
}

/* Packs scalars. */
static bool pack_value(const struct infer *infer, struct shape *value)
{
    return infer_value_joined(infer, 0, value);
}

static void pack_gradient(struct grad *g)
{
    int n = g->node->n_inputs;
    struct attr attrs[] = {{"num", attr_int(n)}, {"axis", attr_int(node_int(g->node, "axis"))}};
    struct edge parts = build_op(&g->b, "Unpack", &g->out[0], 1, attrs, 2);
    for (int i = 0; i < n && edge_exists(parts); i++)
        g->in[i] = build_slot(parts, i);
}

#define PACKS(op, ...)                                                                             \
    const struct op_def op_##op = {                                                                \
        .name = #op, .half = HALF_CLEAR, .cost = cost_elements, __VA_ARGS__}

PACKS(Pack, .inputs = "values: N*T", .outputs = "output: T",
      .attrs = "T: numeric|bool, N: int >= 1, axis: int = 0",
      .doc = "Tensors of one shape stacked along a new dimension.",
      .detail = "axis says where the new dimension is; from the end if negative."
                "\n" NO_STRINGS,
      .value = pack_value, .shape = pack_shape, .gradient = pack_gradient);

static int unpack_shape(struct infer *infer)
{
    int at, code = infer_rank_at_least(infer, 0, 1);
    int64_t axis = node_int(infer->node, "axis");
    const struct shape *in = infer_shape(infer, 0);
    if (code || in->rank < 0)
        return code;
    if (!shape_axis(axis, in->rank, &at))
        return infer_fail(infer, "axis %" PRId64 " is outside [%d, %d)", axis, -in->rank, in->rank);
    if (in->dims[at] >= 0 && in->dims[at] != infer->n_out)
        return infer_fail(infer, "dimension %d of %s is not num, which is %d", at, shape_text(in),
                          infer->n_out);
    struct shape part = {.rank = in->rank - 1};
    for (int i = 0; i < part.rank; i++)
        part.dims[i] = in->dims[i < at ? i : i + 1];
    for (int i = 0; i < infer->n_out; i++)
        infer->out[i] = part;
    return 0;
}

static void unpack_gradient(struct grad *g)
{
    int n = g->node->n_outputs;
    struct edge *parts = mem_array((size_t)n, sizeof *parts);
    struct attr attrs[] = {{"N", attr_int(n)}, {"axis", attr_int(node_int(g->node, "axis"))}};
    for (int i = 0; i < n; i++)
        parts[i] = grad_out_or_zeros(g, i);
    if (n > 0)
        g->in[0] = build_op(&g->b, "Pack", parts, n, attrs, 2);
    mem_free(parts);
}

PACKS(Unpack, .inputs = "value: T", .outputs = "output: num*T",
      .attrs = "T: numeric|bool, num: int >= 0, axis: int = 0",
      .doc = "A tensor cut along a dimension into parts without it.", .detail = NO_STRINGS,
      .shape = unpack_shape, .gradient = unpack_gradient);
