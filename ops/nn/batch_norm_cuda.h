/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization of images [outer, channels, inner]: NHWC has an inner of 1, NCHW an outer of
 * as many as there are images. Sums are in float64 and in an order that the shape decides.
 */
#ifndef TF_OPS_NN_BATCH_NORM_CUDA_H
#define TF_OPS_NN_BATCH_NORM_CUDA_H

#include <stdbool.h>
#include <stddef.h>

#include "ops/device/launch_cuda.h"

struct cuda_batch_norm {
    enum cuda_type type; /* a float; vectors have it, too */
    int64_t outer, channels, inner;
    bool training;
    double epsilon;
    const void *x, *scale;
    const void *g;               /* of the gradient: what flows back; else NULL */
    const void *offset;          /* not of the gradient */
    const void *mean, *variance; /* of the gradient, and where it is not training */
    /* y, mean, unbiased variance, mean, variance; of the gradient: those of x, scale, offset. */
    void *out[5];
    void *scratch; /* cuda_batch_norm_scratch bytes, at a multiple of 8 */
};

CUDA_C size_t cuda_batch_norm_scratch(int64_t outer, int64_t channels, int64_t inner);

CUDA_C int cuda_batch_norm(const struct cuda_batch_norm *call, struct CUstream_st *stream);

/* Around cuDNN's, which has other vectors, in the scratch memory: in training mean and unbiased
 * variance, which are zeros before and are made outputs of after; of the gradient
 * 1 / sqrt(variance + epsilon). Where statistics are given they are outputs. */
CUDA_C int cuda_batch_norm_before(const struct cuda_batch_norm *call, struct CUstream_st *stream);
CUDA_C int cuda_batch_norm_after(const struct cuda_batch_norm *call, struct CUstream_st *stream);

#endif
