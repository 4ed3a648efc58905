/* SPDX-License-Identifier: Apache-2.0
 *
 * Moving a block of elements between two arrangements in memory: the common part of slicing,
 * joining, padding, tiling, reversing and transposing. Each device implements strided_move and
 * fills; kernels built from them run on any device (_any.c).
 */
#ifndef TF_OPS_ARRAY_STRIDED_H
#define TF_OPS_ARRAY_STRIDED_H

#include <stddef.h>

#include "exec/device/kernel.h"

/* Tiling takes two dimensions for each of the input's. */
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

/* Adds a dimension inside the others. */
static inline void strided_add(struct strided *s, int64_t dim, int64_t to, int64_t from)
{
    s->dims[s->rank] = dim;
    s->to[s->rank] = to;
    s->from[s->rank++] = from;
}

/* Describes how a value, which broadcasts to the matrix `shape`, is repeated to fill it. */
static inline struct strided strided_repeated(const struct tensor *value, const struct shape *shape)
{
    const struct shape *has = &value->shape;
    struct strided s = {.item_bytes = dtype_bytes(value->type)};
    int64_t item = (int64_t)s.item_bytes, columns = has->rank ? has->dims[has->rank - 1] : 1;
    bool repeats_rows = has->rank < 2 || has->dims[0] == 1;
    strided_add(&s, shape->dims[0], shape->dims[1] * item, repeats_rows ? 0 : columns * item);
    strided_add(&s, shape->dims[1], item, columns == 1 ? 0 : item);
    return s;
}

/* Copies, or enqueues the copy: KERNEL_DONE, KERNEL_ENQUEUED or an error. Destinations must be
 * distinct and must not overlap what is read. `s` may be changed: adjacent dimensions are
 * merged. */
int strided_move(struct kernel_call *call, struct strided *s, void *to, const void *from);

/* Fill `out` with `value`, which is in the device's memory, or with the first bytes of `bits`. */
int strided_fill(struct kernel_call *call, struct tensor *out, const void *value);
int strided_fill_bits(struct kernel_call *call, struct tensor *out, uint64_t bits);

/* ---- strided_cpu.c, only for files whose names end in _cpu.c ---- */

void strided_copy(struct strided *s, void *to, const void *from, int threads);

#endif
