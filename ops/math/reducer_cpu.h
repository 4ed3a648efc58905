/* SPDX-License-Identifier: Apache-2.0
 *
 * How runs and rows of elements are folded, per op and type. Accumulators are wider than elements
 * where this preserves digits (float32 sums are kept in double from block to block). The number of
 * lanes is fixed, so that bits do not depend on the machine's vector length.
 */
#ifndef TF_OPS_MATH_REDUCER_CPU_H
#define TF_OPS_MATH_REDUCER_CPU_H

#include <stddef.h>
#include <stdint.h>

#include "tensor/dtype.h"

#define REDUCER_RUN 2048 /* elements folded between updates of a wide accumulator */
#define REDUCER_ROWS 32  /* the same for rows */
#define REDUCER_COLUMNS 1024
#define REDUCER_LANES 32
#define REDUCER_ACC_BYTES 16 /* maximum size of an accumulator */

struct reducer {
    const char *op;
    enum dtype type;
    const char *name;
    size_t acc_bytes;
    void (*start)(int64_t n, void *acc); /* sets n accumulators to the identity */
    /* Folds n <= REDUCER_RUN elements, one after the other, into one accumulator. */
    void (*run)(int64_t n, const void *x, void *acc);
    /* Folds n_rows <= REDUCER_ROWS rows, `stride` elements apart, into an accumulator per column;
     * n <= REDUCER_COLUMNS. */
    void (*rows)(int64_t n_rows, int64_t stride, int64_t n, const void *x, void *acc);
    void (*merge)(int64_t n, void *acc, const void *other);
    /* Writes n results, each of `count` elements. */
    void (*finish)(int64_t n, const void *acc, int64_t count, void *out);
    bool needs_elements; /* no elements give no result */
};

const struct reducer *reducer_find(const char *op, enum dtype type); /* NULL: none */

#endif
