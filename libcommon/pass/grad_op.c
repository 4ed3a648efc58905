/* SPDX-License-Identifier: Apache-2.0
 *
 * What gradient functions of ops call.
 */
#include "pass/grad.h"

struct edge grad_out_or_zeros(struct grad *g, int k)
{
    if (edge_exists(g->out[k]))
        return g->out[k];
    return build_unary(&g->b, "ZerosLike", grad_output(g, k));
}

/* Axes of `full` along which `part` was repeated to broadcast to it. Both are known. */
static int repeated_axes(const struct shape *part, const struct shape *full,
                         int64_t axes[SHAPE_RANK_MAX])
{
    int n = 0, added = full->rank - part->rank;
    for (int axis = 0; axis < full->rank; axis++)
        if (axis < added || (part->dims[axis - added] == 1 && full->dims[axis] != 1))
            axes[n++] = axis;
    return n;
}

struct edge grad_unbroadcast(struct grad *g, struct edge gradient, int i, int other)
{
    struct build *b = &g->b;
    struct edge x = grad_input(g, i), y = grad_input(g, other);
    if (b->failed)
        return EDGE_NONE;
    const struct shape *part = build_shape(b, x), *beside = build_shape(b, y);
    struct shape full;
    if (shape_is_known(part) && shape_is_known(beside) && shape_broadcast(part, beside, &full)) {
        int64_t axes[SHAPE_RANK_MAX];
        int n = repeated_axes(part, &full, axes);
        if (!n && part->rank == full.rank)
            return shape_equal(part, build_shape(b, gradient))
                       ? gradient
                       : build_binary(b, "Reshape", gradient,
                                      build_ints(b, part->dims, part->rank));
        struct edge sum = build_binary(b, "Sum", gradient, build_ints(b, axes, n));
        return build_binary(b, "Reshape", sum, build_ints(b, part->dims, part->rank));
    }
    struct edge shape = build_unary(b, "Shape", x);
    struct edge axes = build_binary(b, "BroadcastGradientArgs", shape, build_unary(b, "Shape", y));
    return build_binary(b, "Reshape", build_binary(b, "Sum", gradient, axes), shape);
}

void grad_set_rows(struct grad *g, int i, struct edge values, struct edge indices)
{
    g->in[i] = values;
    g->in_indices[i] = indices;
}
