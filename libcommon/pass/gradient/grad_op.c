/* SPDX-License-Identifier: Apache-2.0
 *
 * What gradient functions of ops call.
 */
#include "pass/gradient/grad.h"

struct edge grad_out_or_zeros(struct grad *g, int k)
{
    if (edge_exists(g->out[k]))
        return g->out[k];
    return build_unary(&g->b, "ZerosLike", grad_output(g, k));
}

/* Axes of the broadcast result over which `part`, seen beside `other`, must be summed; -1 if that
 * depends on dimensions that are not known. An axis of length 1 in `part` may always be summed. */
static int repeated_axes(const struct shape *part, const struct shape *other,
                         int64_t axes[SHAPE_RANK_MAX])
{
    if (part->rank == SHAPE_UNKNOWN || other->rank == SHAPE_UNKNOWN)
        return -1;
    int n = 0, rank = part->rank > other->rank ? part->rank : other->rank;
    for (int axis = 0; axis < rank; axis++) {
        int p = axis - (rank - part->rank), o = axis - (rank - other->rank);
        int64_t beside = o < 0 ? 1 : other->dims[o];
        if (p < 0 || (part->dims[p] == 1 && beside != 1))
            axes[n++] = axis;
        else if (part->dims[p] == SHAPE_UNKNOWN && beside != 1)
            return -1;
    }
    return n;
}

struct edge grad_unbroadcast(struct grad *g, struct edge gradient, int i, int other)
{
    struct build *b = &g->b;
    struct edge x = grad_input(g, i), y = grad_input(g, other);
    int64_t axes[SHAPE_RANK_MAX];
    if (b->failed || (x.node == y.node && x.slot == y.slot))
        return gradient;
    int n = repeated_axes(build_shape(b, x), build_shape(b, y), axes);
    if (n == 0)
        return gradient;
    if (n > 0) {
        struct edge sum = build_binary(b, "Sum", gradient, build_ints(b, axes, n));
        const struct shape *known = build_shape(b, x);
        return build_binary(b, "Reshape", sum,
                            shape_is_known(known) ? build_ints(b, known->dims, known->rank)
                                                  : build_unary(b, "Shape", x));
    }
    struct edge shape = build_unary(b, "Shape", x);
    struct edge dynamic =
        build_binary(b, "BroadcastGradientArgs", shape, build_unary(b, "Shape", y));
    return build_binary(b, "Reshape", build_binary(b, "Sum", gradient, dynamic), shape);
}

void grad_set_rows(struct grad *g, int i, struct edge values, struct edge indices)
{
    g->in[i] = values;
    g->in_indices[i] = indices;
}
