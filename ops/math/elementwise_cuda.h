/* SPDX-License-Identifier: Apache-2.0
 *
 * Element-wise ops of one array, and of two that are broadcast. A result may be an input that is
 * walked as it is; otherwise they overlap nowhere.
 */
#ifndef TF_OPS_MATH_ELEMENTWISE_CUDA_H
#define TF_OPS_MATH_ELEMENTWISE_CUDA_H

#include "ops/math/broadcast_cuda.h"

struct cuda_unary {
    int64_t n;
    const void *x;
    void *y; /* of the same type; IsNan: of booleans */
};

struct cuda_binary {
    struct cuda_broadcast walk;
    const void *x, *y;
    void *out;               /* of the same type; of comparisons: of booleans */
    struct cuda_fault fault; /* FAULT_DIVISION, FAULT_POWER of integers */
};

typedef int cuda_unary_launcher(const struct cuda_unary *call, struct CUstream_st *stream);
typedef int cuda_binary_launcher(const struct cuda_binary *call, struct CUstream_st *stream);

/* The launcher of an op ("Sqrt", "FloorDiv") of elements of that type. Where CUDA has none: one
 * that returns CUDA_INVALID_VALUE. */
CUDA_C cuda_unary_launcher *cuda_unary(const char *op, enum cuda_type type);
CUDA_C cuda_binary_launcher *cuda_binary(const char *op, enum cuda_type type);

#endif
