/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel of element-wise ops of two arrays. An op is a struct with `of(x, y, code)`, which sets
 * the code if it finds an error.
 */
#ifndef OPS_MATH_BINARY_CUDA_CUH
#define OPS_MATH_BINARY_CUDA_CUH

#include "ops/math/broadcast_cuda.cuh"
#include "ops/math/element_rows_cuda.cuh"
#include "ops/math/launchers_cuda.h"

template <typename Op, typename R, typename T>
DEVICE_INLINE R apply(const cuda_fault &fault, T x, T y, int64_t i)
{
    uint16_t code = FAULT_NONE;
    R result;
    if constexpr (std::is_same<R, bool>::value)
        result = Op::of(widen(x), widen(y), code);
    else
        result = narrow<R>(Op::of(widen(x), widen(y), code));
    if (code)
        leave_fault(fault, code, i);
    return result;
}

template <typename Op, typename T, typename R>
static __global__ void binary(const struct cuda_binary call, bool packs)
{
    const broadcast &plan = call.walk;
    each_pack<16 / sizeof(T)>(plan.count, packs, [&](auto width, int64_t i) {
        constexpr int N = decltype(width)::value;
        int64_t at[BROADCAST_INPUTS_MAX];
        place_of<N>(plan, i, at);
        pack<T, N> x = load_operand<N>(static_cast<const T *>(call.x) + at[0], plan.strides[0][0]);
        pack<T, N> y = load_operand<N>(static_cast<const T *>(call.y) + at[1], plan.strides[1][0]);
        pack<R, N> result;
        for (int k = 0; k < N; k++)
            result.at[k] = apply<Op, R>(call.fault, x.at[k], y.at[k], i + k);
        store_pack(static_cast<R *>(call.out) + i, result);
    });
}

template <typename Op, typename T, typename R>
static int launch(const struct cuda_binary *call, struct CUstream_st *stream)
{
    constexpr int N = 16 / sizeof(T);
    const broadcast &plan = call->walk;
    bool packs = is_packed<T>(plan, 0, call->x, N) && is_packed<T>(plan, 1, call->y, N) &&
                 is_aligned(call->out, N * sizeof(R));
    return CUDA_LAUNCH_EACH((binary<Op, T, R>), pack_count(plan.count, packs, N), stream, *call,
                            packs);
}

/* Finds a comparison's launcher, or nullptr. */
cuda_binary_launcher *find_comparison(const char *op, cuda_type type);

#endif
