/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TF_OPS_MATH_BROADCAST_CUDA_H
#define TF_OPS_MATH_BROADCAST_CUDA_H

#include "ops/device/launch_cuda.h"

#define CUDA_BROADCAST_INPUTS 3

/* How inputs are traversed to fill a row-major output: its dimensions, outermost first, and each
 * input's stride along each, in elements; 0: it stays. A scalar has rank 0. */
struct cuda_broadcast {
    int rank;
    int64_t dims[CUDA_RANK_MAX];
    int64_t strides[CUDA_BROADCAST_INPUTS][CUDA_RANK_MAX];
};

struct shape;

/* Plans how n inputs, which can be broadcast to `out`, are traversed. */
CUDA_C void cuda_broadcast_plan(struct cuda_broadcast *walk, const struct shape *out,
                                const struct shape *const *inputs, int n);

#endif
