/* SPDX-License-Identifier: Apache-2.0
 *
 * Element types in kernels: the type that each is computed in, and conversions to it and back; and
 * how a kernel reports an error.
 */
#ifndef OPS_DEVICE_TYPES_CUDA_CUH
#define OPS_DEVICE_TYPES_CUDA_CUH

#include <limits>
#include <type_traits>

#include "ops/device/launch_cuda.cuh"

#define DEVICE_INLINE static __device__ __forceinline__

/* ---- by type ---- */

template <typename T> struct wide_of;
#define X(name, type, wide)                                                                        \
    template <> struct wide_of<type> {                                                             \
        typedef wide is;                                                                           \
    };
CUDA_TYPES(X)
#undef X
template <typename T> using wide = typename wide_of<T>::is;
template <typename T> constexpr bool is_floating = std::is_floating_point<wide<T>>::value;
template <typename T> constexpr bool is_16_bit_float = is_floating<T> && sizeof(T) == 2;

template <typename T> DEVICE_INLINE wide<T> widen(T x)
{
    if constexpr (std::is_same<T, __half>::value)
        return __half2float(x);
    else if constexpr (std::is_same<T, __nv_bfloat16>::value)
        return __bfloat162float(x);
    else
        return x;
}

/* Rounds to nearest even; integers lose their upper bits. */
template <typename T> DEVICE_INLINE T narrow(wide<T> x)
{
    if constexpr (std::is_same<T, __half>::value)
        return __float2half_rn(x);
    else if constexpr (std::is_same<T, __nv_bfloat16>::value)
        return __float2bfloat16_rn(x);
    else
        return static_cast<T>(x);
}

/* The unsigned type of the same size, in which integers wrap around; floats map to themselves. */
template <typename T, bool integer = std::is_integral<T>::value> struct twin_of {
    typedef typename std::make_unsigned<T>::type is;
};
template <typename T> struct twin_of<T, false> {
    typedef T is;
};
template <typename T> using twin = typename twin_of<T>::is;

/* <limits> has host functions only. */
template <typename T> struct limits_of {
    static constexpr T least = std::numeric_limits<T>::lowest();
    static constexpr T most = std::numeric_limits<T>::max();
};

/* Calls `body` for packs of N elements, if they are aligned, and for the single elements that are
 * left: with their number, as a std::integral_constant, and the first one. */
template <int N, typename Body>
DEVICE_INLINE void each_pack(int64_t n, bool packs, const Body &body)
{
    int64_t done = packs ? n / N * N : 0;
    for (int64_t i = thread_index() * N; i < done; i += thread_count() * N)
        body(std::integral_constant<int, N>(), i);
    for (int64_t i = done + thread_index(); i < n; i += thread_count())
        body(std::integral_constant<int, 1>(), i);
}

/* On the host: the threads that are useful to each_pack. */
static inline int64_t pack_count(int64_t n, bool packs, int each)
{
    return packs ? (n + each - 1) / each : n;
}

/* ---- errors ---- */

/* The code itself is the lock: the thread that puts the mark into it writes the rest. Only threads
 * with an error get here. A fault of another item stays, as it precedes this kernel. */
#define FAULT_IS_WRITTEN 0xffffffffu

DEVICE_INLINE void leave_fault(const cuda_fault &to, uint16_t code, int64_t at, int64_t value = 0,
                               int64_t limit = 0)
{
    volatile struct fault *fault = to.at;
    if (!fault)
        return;
    unsigned *lock = reinterpret_cast<unsigned *>(&to.at->code);
    unsigned found = code | static_cast<unsigned>(to.input) << 16;
    for (bool done = false; !done;) {
        unsigned seen = atomicExch(lock, FAULT_IS_WRITTEN);
        if (seen == FAULT_IS_WRITTEN)
            continue;
        __threadfence();
        bool first = !(seen & 0xffff) || (fault->item == to.item && at < fault->at);
        if (first) {
            fault->item = to.item;
            fault->at = at;
            fault->value = value;
            fault->limit = limit;
        }
        __threadfence();
        atomicExch(lock, first ? found : seen);
        done = true;
    }
}

/* For a kernel that changes a variable: returns whether the step has already failed. Such a kernel
 * reports no errors itself: another kernel checks for them first. */
DEVICE_INLINE bool has_failed(const struct fault *fault)
{
    return fault && *reinterpret_cast<const volatile uint16_t *>(&fault->code);
}

/* ---- launchers by type: `launch` is called with an element of the wanted type ---- */

template <typename T> struct element {
    typedef T type;
};

/* For one of n forms, numbered from 0: `launch` is called with its std::integral_constant. */
template <int n, typename Launch> static inline int launch_by_form(int form, const Launch &launch)
{
    if constexpr (n > 0)
        return form == n - 1 ? launch(std::integral_constant<int, n - 1>())
                             : launch_by_form<n - 1>(form, launch);
    else
        return CUDA_INVALID_VALUE;
}

/* For kernels that only move elements of 1, 2, 4 or 8 bytes: unsigned types. */
template <typename Launch> static inline int launch_by_size(int64_t bytes, const Launch &launch)
{
    switch (bytes) {
    case 1:
        return launch(element<uint8_t>());
    case 2:
        return launch(element<uint16_t>());
    case 4:
        return launch(element<uint32_t>());
    case 8:
        return launch(element<uint64_t>());
    default:
        return CUDA_INVALID_VALUE;
    }
}

template <typename Launch> static inline int launch_by_any(cuda_type of, const Launch &launch)
{
    switch (of) {
#define X(name, type, wide)                                                                        \
    case CUDA_##name:                                                                              \
        return launch(element<type>());
        CUDA_TYPES(X)
#undef X
    default:
        return CUDA_INVALID_VALUE;
    }
}

/* Numeric types, except complex ones. */
template <typename T>
constexpr bool is_number = std::is_arithmetic<wide<T>>::value && !std::is_same<T, bool>::value;

template <typename Launch> static inline int launch_by_number(cuda_type of, const Launch &launch)
{
    return launch_by_any(of, [&](auto like) {
        if constexpr (is_number<typename decltype(like)::type>)
            return launch(like);
        else
            return CUDA_INVALID_VALUE;
    });
}

/* Floating-point types, including those of 16 bits. */
template <typename Launch> static inline int launch_by_float(cuda_type of, const Launch &launch)
{
    return launch_by_number(of, [&](auto like) {
        if constexpr (is_floating<typename decltype(like)::type>)
            return launch(like);
        else
            return CUDA_INVALID_VALUE;
    });
}

#endif
