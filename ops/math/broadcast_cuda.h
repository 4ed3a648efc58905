/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TF_OPS_MATH_BROADCAST_CUDA_H
#define TF_OPS_MATH_BROADCAST_CUDA_H

#include "ops/device/launch_cuda.h"

#define CUDA_BROADCAST_INPUTS 3

/* How inputs are walked to fill an output that lies row-major: its dimensions, outermost first, and
 * for each input what a step along each is in elements; 0: it stands still. A scalar has rank 0. */
struct cuda_broadcast {
    int rank;
    int64_t dims[CUDA_RANK_MAX];
    int64_t strides[CUDA_BROADCAST_INPUTS][CUDA_RANK_MAX];
};

struct shape;

/* Plans how n inputs that can be broadcast to `out` are walked. */
CUDA_C void cuda_broadcast_plan(struct cuda_broadcast *walk, const struct shape *out,
                                const struct shape *const *inputs, int n);

#endif
