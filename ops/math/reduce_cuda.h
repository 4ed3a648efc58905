/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TF_OPS_MATH_REDUCE_CUDA_H
#define TF_OPS_MATH_REDUCE_CUDA_H

#include "exec/device/kernel.h"
#include "ops/math/launchers_cuda.h"

/* The run of a reduction kernel: `out` is input 0 reduced by `launch`, which has no addresses yet.
 * Its prepare requests cuda_reduce_scratch bytes if that is known. */
int cuda_reduce_call(struct kernel_call *call, struct cuda_reduce *launch,
                     const struct tensor *out);

#endif
