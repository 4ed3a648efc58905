/* SPDX-License-Identifier: Apache-2.0
 *
 * Select and Fill: elements are moved by their size, whatever they are.
 */
#ifndef TF_OPS_MATH_SELECT_CUDA_H
#define TF_OPS_MATH_SELECT_CUDA_H

#include "ops/math/broadcast_cuda.h"

/* Inputs of the walk: condition, t, e. `out` may be t or e if that is walked as it is. */
struct cuda_select {
    int element_bytes; /* 1, 2, 4 or 8 */
    struct cuda_broadcast walk;
    const void *condition, *t, *e;
    void *out;
};

struct cuda_fill {
    int element_bytes;
    int64_t n;
    const void *value; /* one, on the device; NULL: the first bytes of `bits` */
    void *out;
    uint64_t bits;
};

CUDA_C int cuda_select(const struct cuda_select *call, struct CUstream_st *stream);
CUDA_C int cuda_fill(const struct cuda_fill *call, struct CUstream_st *stream);

#endif
