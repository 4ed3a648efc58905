/* SPDX-License-Identifier: Apache-2.0
 *
 * Element-wise ops of one array. `y` may be `x`; otherwise they overlap nowhere.
 */
#ifndef TF_OPS_MATH_UNARY_CUDA_H
#define TF_OPS_MATH_UNARY_CUDA_H

#include "ops/device/launch_cuda.h"

struct cuda_unary {
    const char *op; /* "Sqrt" */
    enum cuda_type type;
    int64_t n;
    const void *x;
    void *y; /* of the same type; IsNan: of booleans */
};

#ifdef __cplusplus
extern "C" {
#endif

int cuda_unary(const struct cuda_unary *call, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif
