/* SPDX-License-Identifier: Apache-2.0
 *
 * Moving a block of elements between two arrangements in memory: what slicing, joining, padding,
 * tiling, reversing and transposing have in common. Only files whose names end in _cpu.c use this.
 */
#ifndef TF_OPS_ARRAY_STRIDED_H
#define TF_OPS_ARRAY_STRIDED_H

#include <stddef.h>

#include "tensor/shape.h"

/* A tile has two dimensions for each of its input. */
#define STRIDED_RANK_MAX (2 * SHAPE_RANK_MAX)

/* For every index within `dims`, the element at from + sum(index * from_stride) goes to
 * to + sum(index * to_stride). Strides are in bytes and may be negative; those of `from` may be 0.
 */
struct strided {
    int rank;
    size_t item_bytes; /* 1, 2, 4 or 8 */
    int64_t dims[STRIDED_RANK_MAX];
    int64_t to[STRIDED_RANK_MAX], from[STRIDED_RANK_MAX];
};

/* Adds a dimension, the next inner one. */
void strided_add(struct strided *s, int64_t dim, int64_t to, int64_t from);

/* A block of `shape` between two row-major tensors of which it is a part. */
struct strided strided_block(const struct shape *shape, const struct shape *to,
                             const struct shape *from, size_t item_bytes);

/* Copies; the places written to must be distinct and must not overlap what is read. `s` may be
 * changed: dimensions that belong together are merged. */
void strided_copy(struct strided *s, void *to, const void *from, int threads);

#endif
