/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread computes all steps for an element. Results of steps are in the thread's local memory;
 * steps are the same for all threads, so that no warp diverges.
 */
#include "ops/math/launchers_cuda.h"

#include <cstring>

#include "ops/math/arithmetic_ops_cuda.cuh"
#include "ops/math/unary_ops_cuda.cuh"

#define NUMBER(op, ...) FUSED_##op,
#define NAME(op, ...) #op,
enum fused_op {
    OPS_OF_ONE(NUMBER) N_FUSED_UNARY,
    FUSED_LAST_UNARY = N_FUSED_UNARY - 1,
    OPS_OF_TWO(NUMBER) N_FUSED
};

static const char *const names[] = {OPS_OF_ONE(NAME) OPS_OF_TWO(NAME)};

extern "C" int cuda_fused_op(const char *name, int operands)
{
    int end = operands == 1 ? N_FUSED_UNARY : N_FUSED;
    for (int i = operands == 1 ? 0 : N_FUSED_UNARY; i < end; i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}

/* Floats cause no errors. */
template <typename T> DEVICE_INLINE T compute(int op, T x, T y)
{
    uint16_t code = FAULT_NONE;
    switch (op) {
#define UNARY_CASE(op, ...)                                                                        \
    case FUSED_##op:                                                                               \
        return static_cast<T>(op::of(x));
#define BINARY_CASE(op, ...)                                                                       \
    case FUSED_##op:                                                                               \
        return static_cast<T>(op::of(x, y, code));
        OPS_OF_ONE(UNARY_CASE)
        OPS_OF_TWO(BINARY_CASE)
    default:
        return x;
    }
}

template <typename T>
DEVICE_INLINE T operand_of(const struct cuda_fusion &call, const T *results, int operand, int64_t i)
{
    if (operand >= call.n_in)
        return results[operand - call.n_in];
    const T *in = static_cast<const T *>(call.in[operand]);
    return in[call.stands[operand] ? 0 : i];
}

template <typename T> static __global__ void fused(const struct cuda_fusion call)
{
    T results[CUDA_FUSED_STEPS];
    for (int64_t i = thread_index(); i < call.n; i += thread_count()) {
        for (int s = 0; s < call.n_steps; s++) {
            const cuda_fused_step &step = call.steps[s];
            T x = operand_of(call, results, step.operands[0], i), y = x;
            if (step.operands[1] >= 0)
                y = operand_of(call, results, step.operands[1], i);
            results[s] = compute(step.op, x, y);
        }
        static_cast<T *>(call.out)[i] = results[call.n_steps - 1];
    }
}

extern "C" int cuda_fused(const struct cuda_fusion *call, struct CUstream_st *stream)
{
    if (call->type == CUDA_FLOAT32)
        return CUDA_LAUNCH_EACH(fused<float>, call->n, stream, *call);
    if (call->type == CUDA_FLOAT64)
        return CUDA_LAUNCH_EACH(fused<double>, call->n, stream, *call);
    return CUDA_INVALID_VALUE;
}
