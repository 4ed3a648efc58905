/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements of square matrices get a thread each; the elements of a diagonal, which are far apart,
 * go to the lanes of a warp.
 */
#include "ops/matrix/launchers_cuda.h"

#include "ops/device/types_cuda.cuh"

/* Launches for floats of 32 or 64 bits. */
template <typename Launch> static int launch_by_wide_float(cuda_type of, const Launch &launch)
{
    if (of == CUDA_FLOAT32)
        return launch(element<float>());
    if (of == CUDA_FLOAT64)
        return launch(element<double>());
    return CUDA_INVALID_VALUE;
}

/* ---- whole matrices ---- */

template <int form, typename T>
DEVICE_INLINE T element_of_square(const T *from, int64_t n, int64_t at)
{
    int64_t row = at / n, i = row % n, j = at % n;
    if constexpr (form == CUDA_LOWER)
        return j <= i ? from[at] : 0;
    else if constexpr (form == CUDA_LOWER_HALVED)
        return j > i ? 0 : j == i ? from[at] / 2 : from[at];
    else if constexpr (form == CUDA_SYMMETRIC)
        return (from[at] + from[(row - i + j) * n + i]) / 2;
    else
        return i == j;
}

template <int form, typename T> static __global__ void square(const struct cuda_square call)
{
    const T *from = static_cast<const T *>(call.from);
    T *to = static_cast<T *>(call.to);
    int64_t n = call.n, count = n * n * call.matrices;
    for (int64_t at = thread_index(); at < count; at += thread_count())
        to[at] = element_of_square<form>(from, n, at);
}

template <int form> static int launch_square(const struct cuda_square *call, CUstream_st *stream)
{
    int64_t count = call->n * call->n * call->matrices;
    return launch_by_wide_float(call->type, [&](auto e) {
        return CUDA_LAUNCH_EACH((square<form, typename decltype(e)::type>), count, stream, *call);
    });
}

extern "C" int cuda_square(const struct cuda_square *call, struct CUstream_st *stream)
{
    return launch_by_form<CUDA_IDENTITY + 1>(
        call->form, [&](auto form) { return launch_square<decltype(form)::value>(call, stream); });
}

/* ---- diagonals ---- */

/* Multiplies the factors one after the other, as the CPU does, so that both overflow alike. */
template <typename T> static __global__ void determinant(const struct cuda_determinant call)
{
    int64_t n = call.n;
    int lane = threadIdx.x % CUDA_WARP;
    for (int64_t m = thread_index() / CUDA_WARP; m < call.matrices;
         m += thread_count() / CUDA_WARP) {
        const T *factors = static_cast<const T *>(call.factors) + m * n * n;
        const int32_t *pivots = call.pivots + m * n;
        int64_t info = n ? call.infos[m] : 0, end = info > 0 ? info : n;
        T product = 1;
        for (int64_t first = 0; first < end; first += CUDA_WARP) {
            int64_t i = first + lane;
            T factor = 1;
            if (i < end) {
                factor = i + 1 == info ? 0 : factors[i * (n + 1)];
                factor = pivots[i] == i + 1 ? factor : -factor;
            }
            for (int l = 0; l < CUDA_WARP; l++)
                product *= __shfl_sync(CUDA_ALL_LANES, factor, l);
        }
        if (lane == 0)
            static_cast<T *>(call.out)[m] = product;
    }
}

extern "C" int cuda_determinant(const struct cuda_determinant *call, struct CUstream_st *stream)
{
    return launch_by_wide_float(call->type, [&](auto e) {
        return CUDA_LAUNCH_EACH((determinant<typename decltype(e)::type>),
                                call->matrices * CUDA_WARP, stream, *call);
    });
}

template <typename T> static __global__ void check_diagonal(const struct cuda_diagonal call)
{
    int64_t n = call.n;
    int lane = threadIdx.x % CUDA_WARP;
    for (int64_t m = thread_index() / CUDA_WARP; m < call.matrices;
         m += thread_count() / CUDA_WARP) {
        const T *a = static_cast<const T *>(call.a) + m * n * n;
        unsigned zeros = 0;
        for (int64_t first = 0; first < n && !zeros; first += CUDA_WARP) {
            int64_t i = first + lane;
            bool is_zero = i < n && a[i * (n + 1)] == 0;
            zeros = __ballot_sync(CUDA_ALL_LANES, is_zero);
            if (is_zero && !(zeros & ((1u << lane) - 1)))
                leave_fault(call.fault, FAULT_DIAGONAL, m, i + 1);
        }
    }
}

extern "C" int cuda_check_diagonal(const struct cuda_diagonal *call, struct CUstream_st *stream)
{
    return launch_by_wide_float(call->type, [&](auto e) {
        return CUDA_LAUNCH_EACH((check_diagonal<typename decltype(e)::type>),
                                call->matrices * CUDA_WARP, stream, *call);
    });
}

/* ---- cuSOLVER's infos ---- */

static __global__ void check_infos(const struct cuda_infos call)
{
    for (int64_t m = thread_index(); m < call.matrices; m += thread_count())
        if (call.infos[m])
            leave_fault(call.fault, call.code, m, call.infos[m]);
}

extern "C" int cuda_check_infos(const struct cuda_infos *call, struct CUstream_st *stream)
{
    return CUDA_LAUNCH_EACH(check_infos, call->matrices, stream, *call);
}
