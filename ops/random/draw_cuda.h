/* SPDX-License-Identifier: Apache-2.0
 *
 * The random numbers that a call of a CUDA kernel draws. Only files whose names end in _cuda.c
 * include this.
 */
#ifndef TF_OPS_RANDOM_DRAW_CUDA_H
#define TF_OPS_RANDOM_DRAW_CUDA_H

#include "ops/random/draw.h"
#include "ops/random/launchers_cuda.h"

static inline struct cuda_random_place cuda_random_place_of(const struct kernel_call *call,
                                                            const struct random_seeds *seeds)
{
    return (struct cuda_random_place){.op_seed = seeds->seed,
                                      .op_seed2 = seeds->seed2,
                                      .iteration = call->iteration,
                                      .step = call->step_block};
}

#endif
