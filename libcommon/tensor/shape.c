/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/shape.h"

struct shape shape_of(int rank, const int64_t *dims)
{
    struct shape shape = {.rank = rank};
    BUG_ON(rank > SHAPE_RANK_MAX);
    for (int i = 0; i < rank; i++)
        shape.dims[i] = dims[i];
    return shape;
}

struct shape shape_vector(int64_t length)
{
    return (struct shape){.rank = 1, .dims = {length}};
}

struct shape shape_matrix(int64_t rows, int64_t columns)
{
    return (struct shape){.rank = 2, .dims = {rows, columns}};
}

struct shape shape_unknown(int rank)
{
    struct shape shape = {.rank = rank};
    for (int i = 0; i < rank; i++)
        shape.dims[i] = SHAPE_UNKNOWN;
    return shape;
}

bool shape_is_known(const struct shape *shape)
{
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] < 0)
            return false;
    return shape->rank >= 0;
}

bool shape_equal(const struct shape *a, const struct shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return true;
}

int64_t shape_count(const struct shape *shape)
{
    /* Zeros count as ones in the overflow check, so that the strides of an empty shape fit, too. */
    int64_t product = 1;
    bool empty = false;
    if (!shape_is_known(shape))
        return -1;
    for (int i = 0; i < shape->rank; i++) {
        empty |= !shape->dims[i];
        if (shape->dims[i] && __builtin_mul_overflow(product, shape->dims[i], &product))
            return -1;
    }
    return empty ? 0 : product;
}

int64_t shape_bytes(const struct shape *shape, enum dtype type)
{
    int64_t count = shape_count(shape), bytes, item = (int64_t)dtype_bytes(type);
    if (count < 0 || !item || __builtin_mul_overflow(count, item, &bytes))
        return -1;
    return bytes;
}

bool shape_compatible(const struct shape *a, const struct shape *b)
{
    struct shape merged;
    return shape_merge(a, b, &merged);
}

bool shape_merge(const struct shape *a, const struct shape *b, struct shape *merged)
{
    if (a->rank < 0 || b->rank < 0) {
        *merged = a->rank < 0 ? *b : *a;
        return true;
    }
    if (a->rank != b->rank)
        return false;
    struct shape result = *a;
    for (int i = 0; i < a->rank; i++) {
        if (a->dims[i] >= 0 && b->dims[i] >= 0 && a->dims[i] != b->dims[i])
            return false;
        if (a->dims[i] < 0)
            result.dims[i] = b->dims[i];
    }
    *merged = result;
    return true;
}

struct shape shape_join(const struct shape *a, const struct shape *b)
{
    if (a->rank != b->rank)
        return SHAPE_ANY;
    struct shape joined = *a;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            joined.dims[i] = SHAPE_UNKNOWN;
    return joined;
}

bool shape_broadcast(const struct shape *a, const struct shape *b, struct shape *result)
{
    if (a->rank < 0 || b->rank < 0) {
        *result = SHAPE_ANY;
        return true;
    }
    struct shape wide = {.rank = a->rank > b->rank ? a->rank : b->rank};
    for (int i = 1; i <= wide.rank; i++) {
        int64_t x = i <= a->rank ? a->dims[a->rank - i] : 1;
        int64_t y = i <= b->rank ? b->dims[b->rank - i] : 1;
        if (x != y && x != 1 && y != 1 && x >= 0 && y >= 0)
            return false;
        /* An unknown dimension is 1 or equals the other, if that is not 1. */
        wide.dims[wide.rank - i] = x == 1 || (x < 0 && y != 1) ? y : x;
    }
    *result = wide;
    return true;
}

void shape_strides(const struct shape *shape, int64_t strides[SHAPE_RANK_MAX])
{
    int64_t stride = 1;
    for (int i = shape->rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= shape->dims[i] ? shape->dims[i] : 1;
    }
}

bool shape_axis(int64_t axis, int rank, int *index)
{
    if (axis < -(int64_t)rank || axis >= rank)
        return false;
    *index = (int)(axis < 0 ? axis + rank : axis);
    return true;
}
