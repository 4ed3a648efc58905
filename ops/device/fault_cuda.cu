/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes over a fault that another part of the step has found.
 */
#include "ops/device/launch_cuda.cuh"

static __global__ void leave(step_block *block, const fault *other)
{
    if (other->code != FAULT_NONE && block->fault.code == FAULT_NONE)
        block->fault = *other;
}

int cuda_leave_fault(step_block *block, const fault *other, CUstream_st *stream)
{
    return CUDA_LAUNCH(leave, 1, 1, 0, stream, block, other);
}
