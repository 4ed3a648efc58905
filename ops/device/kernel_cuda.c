/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/device/kernel_cuda.h"

#include "ops/device/cuda.h"

struct CUstream_st *cuda_compute(const struct kernel_call *call)
{
    struct cuda_device *d = cuda_device(call->device);
    struct error ignored = ERROR_INIT; /* the launch returns the error */
    cuda_enter(d, &ignored);           /* the thread may have used another device */
    return (struct CUstream_st *)cuda_stream(d, QUEUE_COMPUTE);
}

int cuda_launched(struct kernel_call *call, int result)
{
    if (result == CUDA_INVALID_VALUE)
        return error_set(call->err, ERR_INTERNAL, "CUDA has no such kernel");
    struct cuda_device *d = cuda_device(call->device);
    int code = cuda_check_enqueued(d, result, "a kernel is launched", call->err);
    return code ? code : KERNEL_ENQUEUED;
}

struct cuda_fault cuda_fault_of(const struct kernel_call *call, int input)
{
    return (struct cuda_fault){.at = call->step_block ? &call->step_block->fault : NULL,
                               .item = call->item,
                               .input = (uint16_t)input};
}

const struct fault *cuda_step_fault(const struct kernel_call *call)
{
    return call->step_block ? &call->step_block->fault : NULL;
}

void *cuda_scratch(struct kernel_call *call, size_t bytes)
{
    if (!bytes)
        return NULL;
    return bytes <= call->scratch_bytes ? call->scratch : kernel_device_temporary(call, bytes);
}
