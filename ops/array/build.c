/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/array/build.h"

struct edge array_ints(struct build *b, enum dtype type, const int64_t *values, int n)
{
    if (type != INT64)
        return build_ints(b, values, n);
    struct shape shape = shape_vector(n);
    struct tensor t = tensor_borrow(INT64, &shape, (void *)(uintptr_t)values);
    return build_const(b, &t);
}

struct edge array_shape(struct build *b, struct edge x, enum dtype type)
{
    const struct shape *shape = build_shape(b, x);
    struct attr attr = {"out_type", attr_type(type)};
    if (shape_is_known(shape))
        return array_ints(b, type, shape->dims, shape->rank);
    return build_op(b, "Shape", &x, 1, &attr, 1);
}

struct edge array_reshape_like(struct build *b, struct edge x, struct edge like)
{
    const struct shape *have = build_shape(b, x), *want = build_shape(b, like);
    if (shape_is_known(want) && shape_equal(have, want))
        return x;
    enum dtype type = shape_count(want) > INT32_MAX ? INT64 : INT32;
    return build_binary(b, "Reshape", x, array_shape(b, like, type));
}

struct edge array_flatten(struct build *b, struct edge x)
{
    if (build_shape(b, x)->rank == 1)
        return x;
    return build_binary(b, "Reshape", x, build_ints(b, (int64_t[]){-1}, 1));
}

int array_constant(const struct build *b, struct edge x, int64_t *values, int max)
{
    const struct tensor *t = edge_exists(x) ? graph_constant(b->graph, x) : NULL;
    if (!t || tensor_count(t) > max)
        return -1;
    int n = (int)tensor_count(t);
    for (int i = 0; i < n; i++)
        values[i] = tensor_get_int64(t, i);
    return n;
}
