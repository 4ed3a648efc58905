/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread per element. Rows that list their elements get a block per group, which adds member
 * after member, so that sums have a fixed order.
 */
#include "ops/aggregate/gradient_code_cuda.cuh"

static __global__ void decode(const struct cuda_decode call)
{
    const cuda_code &code = call.code;
    int64_t n = code.groups * code.group;
    for (int64_t i = thread_index(); i < n; i += thread_count()) {
        int64_t group = i / code.group, element = i % code.group;
        float sum = value_of(code, call.rows + group * code.row, element);
        for (int64_t k = 1; k < call.n; k++)
            sum += value_of(code, call.rows + (k * code.groups + group) * code.row, element);
        call.mean[i] = call.n > 1 ? sum / static_cast<float>(call.n) : sum;
    }
}

/* A row's indices are distinct, unless it is malformed: then the result is undefined, but confined
 * to the group. */
static __global__ void decode_top(const struct cuda_decode call)
{
    const cuda_code &code = call.code;
    for (int64_t group = blockIdx.x; group < code.groups; group += gridDim.x) {
        float *mean = call.mean + group * code.group;
        for (int64_t i = threadIdx.x; i < code.group; i += CUDA_BLOCK)
            mean[i] = 0;
        __syncthreads();
        for (int64_t k = 0; k < call.n; k++) {
            const uint8_t *row = call.rows + (k * code.groups + group) * code.row;
            for (int64_t i = threadIdx.x; i < code.keep; i += CUDA_BLOCK) {
                int64_t index;
                float value;
                if (entry_of(code, row, i, &index, &value))
                    mean[index] += value;
                else
                    leave_fault(call.fault, FAULT_GROUP, group);
            }
            __syncthreads();
        }
        for (int64_t i = threadIdx.x; call.n > 1 && i < code.group; i += CUDA_BLOCK)
            mean[i] /= static_cast<float>(call.n);
    }
}

extern "C" int cuda_decode(const struct cuda_decode *call, struct CUstream_st *stream)
{
    const struct cuda_code *code = &call->code;
    if (code->kind == CUDA_CODE_TOP)
        return CUDA_LAUNCH_EACH(decode_top, code->groups * CUDA_BLOCK, stream, *call);
    return CUDA_LAUNCH_EACH(decode, code->groups * code->group, stream, *call);
}

/* ---- quantization error ---- */

static __global__ void lose(const struct cuda_lose call)
{
    const cuda_code &code = call.code;
    int64_t n = code.groups * code.group;
    if (has_failed(call.fault.at))
        return;
    for (int64_t i = thread_index(); i < n; i += thread_count()) {
        const uint8_t *row = call.rows + i / code.group * code.row;
        call.residual[i] =
            call.gradient[i] + call.residual[i] - value_of(code, row, i % code.group);
    }
}

static __global__ void check_top(const struct cuda_lose call)
{
    const cuda_code &code = call.code;
    int64_t n = code.groups * code.keep, index;
    float value;
    for (int64_t i = thread_index(); i < n; i += thread_count())
        if (!entry_of(code, call.rows + i / code.keep * code.row, i % code.keep, &index, &value))
            leave_fault(call.fault, FAULT_GROUP, i / code.keep);
}

static __global__ void lose_top(const struct cuda_lose call)
{
    const cuda_code &code = call.code;
    if (has_failed(call.fault.at))
        return;
    for (int64_t group = blockIdx.x; group < code.groups; group += gridDim.x) {
        const uint8_t *row = call.rows + group * code.row;
        const float *gradient = call.gradient + group * code.group;
        float *residual = call.residual + group * code.group;
        for (int64_t i = threadIdx.x; i < code.group; i += CUDA_BLOCK)
            residual[i] = gradient[i] + residual[i];
        __syncthreads();
        for (int64_t i = threadIdx.x; i < code.keep; i += CUDA_BLOCK) {
            int64_t index;
            float value;
            if (entry_of(code, row, i, &index, &value))
                residual[index] -= value;
        }
        __syncthreads();
    }
}

extern "C" int cuda_lose(const struct cuda_lose *call, struct CUstream_st *stream)
{
    const struct cuda_code *code = &call->code;
    if (code->kind != CUDA_CODE_TOP)
        return CUDA_LAUNCH_EACH(lose, code->groups * code->group, stream, *call);
    int result = CUDA_LAUNCH_EACH(check_top, code->groups * code->keep, stream, *call);
    return result ? result : CUDA_LAUNCH_EACH(lose_top, code->groups * CUDA_BLOCK, stream, *call);
}
