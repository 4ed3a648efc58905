/* SPDX-License-Identifier: Apache-2.0
 *
 * Element-wise ops of two arrays, broadcast. `out` may be an input that is walked as it is;
 * otherwise they overlap nowhere.
 */
#ifndef TF_OPS_MATH_BINARY_CUDA_H
#define TF_OPS_MATH_BINARY_CUDA_H

#include "ops/math/broadcast_cuda.h"

struct cuda_binary {
    const char *op; /* "FloorDiv" */
    enum cuda_type type;
    struct cuda_broadcast walk;
    const void *x, *y;
    void *out;               /* of the same type; of comparisons: of booleans */
    struct cuda_fault fault; /* FAULT_DIVISION, FAULT_POWER of integers */
};

#ifdef __cplusplus
extern "C" {
#endif

/* Arithmetic and gradients by results; comparisons and logic. CUDA_INVALID_VALUE of those of the
 * other. */
int cuda_arithmetic(const struct cuda_binary *call, struct CUstream_st *stream);
int cuda_compare(const struct cuda_binary *call, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif
