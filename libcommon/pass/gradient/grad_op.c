/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that gradient functions of ops call.
 */
#include "pass/gradient/grad.h"

#define ATTRS_MAX 16

struct edge grad_op(struct grad *g, const char *op, const struct edge *inputs, int n)
{
    const struct op *built = registry_find(g->b.graph->registry, op);
    struct attr attrs[ATTRS_MAX];
    int n_attrs = 0;
    for (int i = 0; built && i < built->n_attrs && n_attrs < ATTRS_MAX; i++) {
        const struct attr_value *value = node_attr(g->node, built->attrs[i].name);
        if (value && !built->attrs[i].inferred)
            attrs[n_attrs++] = (struct attr){built->attrs[i].name, *value};
    }
    return build_op(&g->b, op, inputs, n, attrs, n_attrs);
}

struct edge grad_out_or_zeros(struct grad *g, int k)
{
    if (edge_exists(g->out[k]))
        return g->out[k];
    return build_unary(&g->b, "ZerosLike", grad_output(g, k));
}

/* Sets the axes of the broadcast result over which `part`, broadcast with `other`, must be summed;
 * -1 if that depends on unknown dimensions. An axis of length 1 in `part` may always be summed. */
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
    if (b->err->code || (x.node == y.node && x.slot == y.slot))
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

struct edge gradient_dense(struct build *b, const struct gradient *gradient, struct edge x)
{
    if (!edge_exists(gradient->indices))
        return gradient->values;
    struct edge begin = build_ints(b, (int64_t[]){0}, 1), one = build_ints(b, (int64_t[]){1}, 1);
    struct edge slice[] = {build_unary(b, "Shape", x), begin, one};
    struct edge rows = build_unary(b, "Squeeze", build_op(b, "Slice", slice, 3, NULL, 0));
    const struct shape *shape = build_shape(b, x);
    if (shape->rank > 0 && shape->dims[0] >= 0) {
        int32_t count = (int32_t)shape->dims[0];
        struct tensor t = tensor_borrow(INT32, &SHAPE_SCALAR, &count);
        rows = build_const(b, &t);
    }
    struct edge inputs[] = {gradient->values, gradient->indices, rows};
    return build_op(b, "UnsortedSegmentSum", inputs, 3, NULL, 0);
}
