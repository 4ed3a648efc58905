/* SPDX-License-Identifier: Apache-2.0
 *
 * Local response normalization over the innermost dimension, with the CPU's bits in float32.
 */
#ifndef TF_OPS_NN_LRN_CUDA_H
#define TF_OPS_NN_LRN_CUDA_H

#include <stddef.h>

#include "ops/device/launch_cuda.h"

struct cuda_lrn {
    enum cuda_type type; /* a float */
    int64_t positions, channels, radius;
    double bias, alpha, beta;
    const void *x;
    const void *y, *g; /* of the gradient: what came of x, and what flows back to it; else NULL */
    void *out;
    void *scratch; /* of the gradient: cuda_lrn_scratch bytes, at a multiple of 8 */
};

CUDA_C size_t cuda_lrn_scratch(enum cuda_type type, int64_t elements);

CUDA_C int cuda_lrn(const struct cuda_lrn *call, struct CUstream_st *stream);

#endif
