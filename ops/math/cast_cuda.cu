/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/math/launchers_cuda.h"

#include "ops/device/types_cuda.cuh"

/* Converts a float to an integer. `above` is the first value that is too large; as a power of two,
 * it is exact in both float types. */
template <typename To, typename From> DEVICE_INLINE To bounded(From x)
{
    constexpr To least = limits_of<To>::least, most = limits_of<To>::most;
    constexpr From above = static_cast<From>(most / 2 + 1) * 2;
    return x != x                          ? To(0)
           : x <= static_cast<From>(least) ? least
           : x >= above                    ? most
                                           : static_cast<To>(x);
}

/* Converts float64 to float32 so that a second rounding to 16 bits does not mistake it for a tie:
 * inexact results are truncated toward zero, and their last bit is set. */
DEVICE_INLINE float to_odd(double x)
{
    float y = static_cast<float>(x);
    double size = x < 0 ? -x : x, rounded = y < 0 ? -y : y;
    if (rounded == size || x != x || rounded == static_cast<double>(INFINITY))
        return y;
    uint32_t bits = __float_as_uint(y);
    return __uint_as_float((bits - (rounded > size)) | 1);
}

template <typename To, typename From> DEVICE_INLINE To convert(From x)
{
    wide<From> value = widen(x);
    if constexpr (std::is_same<To, bool>::value)
        return value != 0;
    else if constexpr (is_16_bit_float<To> && std::is_same<From, double>::value)
        return narrow<To>(to_odd(x));
    else if constexpr (is_floating<To>)
        return narrow<To>(static_cast<wide<To>>(value));
    else if constexpr (is_floating<From>)
        return bounded<To>(value);
    else
        return static_cast<To>(value);
}

template <typename From, typename To>
static __global__ void cast(int64_t n, const From *__restrict__ x, To *__restrict__ y, bool packs)
{
    constexpr int most = 16 / (sizeof(From) > sizeof(To) ? sizeof(From) : sizeof(To));
    each_pack<most>(n, packs, [&](auto width, int64_t i) {
        constexpr int N = decltype(width)::value;
        pack<From, N> from = load_pack<N>(x + i);
        pack<To, N> to;
        for (int k = 0; k < N; k++)
            to.at[k] = convert<To>(from.at[k]);
        store_pack(y + i, to);
    });
}

template <typename From, typename To>
static int launch(const struct cuda_cast *call, struct CUstream_st *stream)
{
    constexpr int N = 16 / (sizeof(From) > sizeof(To) ? sizeof(From) : sizeof(To));
    bool packs = is_aligned(call->x, N * sizeof(From)) && is_aligned(call->y, N * sizeof(To));
    return CUDA_LAUNCH_EACH((cast<From, To>), pack_count(call->n, packs, N), stream, call->n,
                            static_cast<const From *>(call->x), static_cast<To *>(call->y), packs);
}

extern "C" int cuda_cast(const struct cuda_cast *call, struct CUstream_st *stream)
{
    return launch_by_any(call->from, [&](auto from) {
        return launch_by_any(call->to, [&](auto to) {
            using From = typename decltype(from)::type;
            using To = typename decltype(to)::type;
            if constexpr (std::is_same<From, float2>::value || std::is_same<To, float2>::value)
                return CUDA_INVALID_VALUE;
            else
                return launch<From, To>(call, stream);
        });
    });
}
