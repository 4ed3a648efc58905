/* SPDX-License-Identifier: Apache-2.0
 *
 * Several element-wise ops in one pass over memory, with the bits that they have one by one.
 */
#ifndef TF_OPS_MATH_FUSED_CUDA_H
#define TF_OPS_MATH_FUSED_CUDA_H

#include <stdbool.h>

#include "ops/device/launch_cuda.h"

#define CUDA_FUSED_STEPS 16
#define CUDA_FUSED_INPUTS (CUDA_FUSED_STEPS + 1) /* as many as ops of two can take */

struct cuda_fused_step {
    int16_t op;         /* of cuda_fused_op */
    int8_t operands[2]; /* inputs, then results of earlier steps; -1: the op takes one */
};

struct cuda_fused {
    enum cuda_type type; /* float32 or float64 */
    int n_in, n_steps;
    int64_t n;
    struct cuda_fused_step steps[CUDA_FUSED_STEPS];
    const void *in[CUDA_FUSED_INPUTS];
    bool stands[CUDA_FUSED_INPUTS]; /* an input of one element for all */
    void *out;                      /* may be an input that does not stand */
};

/* The number of an op that takes so many operands; -1: there is none of the name. */
CUDA_C int cuda_fused_op(const char *name, int operands);

CUDA_C int cuda_fused(const struct cuda_fused *call, struct CUstream_st *stream);

#endif
