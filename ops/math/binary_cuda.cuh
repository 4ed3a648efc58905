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

template <typename T> struct binary_args {
    walk_plan plan;
    const T *x, *y;
    void *out;
    cuda_fault fault;
};

template <typename Op, typename R, typename T>
DEVICE_INLINE R apply(const binary_args<T> &args, T x, T y, int64_t i)
{
    uint16_t code = FAULT_NONE;
    R result;
    if constexpr (std::is_same<R, bool>::value)
        result = Op::of(widen(x), widen(y), code);
    else
        result = narrow<R>(Op::of(widen(x), widen(y), code));
    if (code)
        leave_fault(args.fault, code, i);
    return result;
}

template <typename Op, typename T, typename R>
static __global__ void binary(const binary_args<T> args)
{
    constexpr int N = 16 / sizeof(T);
    R *out = static_cast<R *>(args.out);
    int64_t n = args.plan.count, done = args.plan.packs ? n / N * N : 0;
    for (int64_t i = thread_index() * N; i < done; i += thread_count() * N) {
        pack<T, N> x = load_operand<N>(args.x, args.plan.advances[0], i);
        pack<T, N> y = load_operand<N>(args.y, args.plan.advances[1], i);
        pack<R, N> result;
        for (int k = 0; k < N; k++)
            result.at[k] = apply<Op, R>(args, x.at[k], y.at[k], i + k);
        store_pack(out + i, result);
    }
    for (int64_t i = done + thread_index(); i < n; i += thread_count()) {
        int64_t at[CUDA_BROADCAST_INPUTS];
        place_of(args.plan, i, at);
        out[i] = apply<Op, R>(args, args.x[at[0]], args.y[at[1]], i);
    }
}

template <typename Op, typename T, typename R>
static int launch(const struct cuda_binary *call, struct CUstream_st *stream)
{
    constexpr int N = 16 / sizeof(T);
    binary_args<T> args = {plan_walk(call->walk), static_cast<const T *>(call->x),
                           static_cast<const T *>(call->y), call->out, call->fault};
    walk_plan &plan = args.plan;
    if (!plan.count)
        return 0;
    plan.packs = plan.packs && is_aligned(call->out, N * sizeof(R)) &&
                 (!plan.advances[0] || is_aligned(call->x, 16)) &&
                 (!plan.advances[1] || is_aligned(call->y, 16));
    return CUDA_LAUNCH_EACH((binary<Op, T, R>), plan.packs ? plan.count / N : plan.count, stream,
                            args);
}

/* Finds a comparison's launcher, or nullptr. */
cuda_binary_launcher *find_comparison(const char *op, cuda_type type);

#endif
