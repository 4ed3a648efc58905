/* SPDX-License-Identifier: Apache-2.0
 *
 * CountUpTo: one thread.
 */
#include "ops/state/launchers_cuda.h"

#include "ops/device/types_cuda.cuh"

template <typename T> static __global__ void count_up_to(const struct cuda_count_up_to call)
{
    T *value = static_cast<T *>(call.value), before = *value;
    if (has_failed(call.fault.at))
        return;
    if (before >= call.limit) {
        leave_fault(call.fault, FAULT_LIMIT, 0, before, call.limit);
        return;
    }
    *static_cast<T *>(call.out) = before;
    *value = before + 1;
}

extern "C" int cuda_count_up_to(const struct cuda_count_up_to *call, struct CUstream_st *stream)
{
    if (call->type == CUDA_INT32)
        return CUDA_LAUNCH(count_up_to<int32_t>, 1, 1, 0, stream, *call);
    if (call->type == CUDA_INT64)
        return CUDA_LAUNCH(count_up_to<int64_t>, 1, 1, 0, stream, *call);
    return CUDA_INVALID_VALUE;
}
