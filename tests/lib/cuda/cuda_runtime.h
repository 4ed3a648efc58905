/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of CUDA that `.cu` files use, on the host: see lib/cuda_emulator.h.
 */
#ifndef CUDA_EMULATOR_RUNTIME_H
#define CUDA_EMULATOR_RUNTIME_H

#include <cmath>
#include <cstdint>
#include <cstring>
#include <math.h>
#include <type_traits>

#include "lib/cuda/emulator.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
constexpr int warpSize = cuda_emulator::warp_size;

typedef struct CUstream_st *cudaStream_t;
enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1 };

/* The arguments are evaluated once, and each thread has its own copy. */
template <typename Body> static void cuda_emulated_thread(const void *context)
{
    (*static_cast<const Body *>(context))();
}

template <typename Body>
static int cuda_emulated_launch(const cuda_emulator::configuration &what, const Body &body)
{
    return cuda_emulator::launch(what, cuda_emulated_thread<Body>, &body);
}

template <typename... Parameters, typename... Arguments>
static int cuda_emulated_call(const cuda_emulator::configuration &what,
                              void (*kernel)(Parameters...), const Arguments &...arguments)
{
    return cuda_emulated_launch(what, [=] { kernel(arguments...); });
}

#define CUDA_LAUNCH(kernel, grid, block, shared, stream, ...)                                      \
    (static_cast<void>(stream),                                                                    \
     cuda_emulated_call({#kernel, dim3(grid), dim3(block), shared}, kernel, __VA_ARGS__))

#define SHARED(type, name, count)                                                                  \
    static const char name##_key = 0;                                                              \
    cuda_emulator::shared_array<type> name = cuda_emulator::shared<type>(&name##_key, #name, count)
#define SHARED_DYNAMIC(type, name)                                                                 \
    cuda_emulator::shared_array<type> name = cuda_emulator::shared<type>(                          \
        &cuda_emulator::dynamic_key, #name, cuda_emulator::dynamic_bytes() / sizeof(type))
template <typename T> using shared_pointer = cuda_emulator::shared_array<T>;

#define ASSUME_ALIGNED(pointer, bytes) cuda_emulator::check_alignment(pointer, bytes, __LINE__)

/* ---- barriers and warps ---- */

#define __syncthreads() cuda_emulator::barrier(__LINE__)
#define __syncwarp                                                                                 \
    cuda_emulated_syncwarp                                                                         \
    {                                                                                              \
        __LINE__                                                                                   \
    }
#define __ballot_sync(mask, predicate)                                                             \
    cuda_emulated_ballot("__ballot_sync", __LINE__, mask, predicate)
#define __any_sync(mask, predicate)                                                                \
    (cuda_emulated_ballot("__any_sync", __LINE__, mask, predicate) != 0)
#define __all_sync(mask, predicate)                                                                \
    (cuda_emulated_ballot("__all_sync", __LINE__, mask, !(predicate)) == 0)
#define __shfl_sync(...) cuda_emulated_shuffle({"__shfl_sync", __LINE__, '='}, __VA_ARGS__)
#define __shfl_up_sync(...) cuda_emulated_shuffle({"__shfl_up_sync", __LINE__, '-'}, __VA_ARGS__)
#define __shfl_down_sync(...)                                                                      \
    cuda_emulated_shuffle({"__shfl_down_sync", __LINE__, '+'}, __VA_ARGS__)
#define __shfl_xor_sync(...) cuda_emulated_shuffle({"__shfl_xor_sync", __LINE__, '^'}, __VA_ARGS__)

struct cuda_emulated_syncwarp {
    int line;
    void operator()(unsigned mask = 0xffffffff) const
    {
        cuda_emulator::warp_operation({cuda_emulator::WARP_SYNC, "__syncwarp", line, mask, 0, 0});
    }
};

static inline unsigned cuda_emulated_ballot(const char *name, int line, unsigned mask, bool value)
{
    return static_cast<unsigned>(
        cuda_emulator::warp_operation({cuda_emulator::WARP_BALLOT, name, line, mask, value, 0}));
}

struct cuda_emulated_shuffle_kind {
    const char *name;
    int line;
    char direction;
};

int cuda_emulated_source(char direction, int by, int width);

template <typename T>
static T cuda_emulated_shuffle(const cuda_emulated_shuffle_kind &kind, unsigned mask, T value,
                               int by, int width = warpSize)
{
    static_assert(sizeof(T) <= sizeof(uint64_t) && std::is_arithmetic<T>::value, "as CUDA has it");
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    bits = cuda_emulator::warp_operation({cuda_emulator::WARP_SHUFFLE, kind.name, kind.line, mask,
                                          bits, cuda_emulated_source(kind.direction, by, width)});
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- atomics: threads switch only where they wait ---- */

#define ATOMIC(name, type, ...)                                                                    \
    static inline type name(type *at, type value)                                                  \
    {                                                                                              \
        type old = *at;                                                                            \
        *at = __VA_ARGS__;                                                                         \
        return old;                                                                                \
    }
#define WRAPPING(name, type, twin, operation)                                                      \
    ATOMIC(name, type, static_cast<type>(static_cast<twin>(old) operation static_cast<twin>(value)))
#define ATOMICS(type, twin)                                                                        \
    WRAPPING(atomicAdd, type, twin, +)                                                             \
    WRAPPING(atomicOr, type, twin, |)                                                              \
    WRAPPING(atomicAnd, type, twin, &)                                                             \
    ATOMIC(atomicExch, type, value)                                                                \
    ATOMIC(atomicMin, type, value < old ? value : old)                                             \
    ATOMIC(atomicMax, type, value > old ? value : old)                                             \
    static inline type atomicCAS(type *at, type expected, type value)                              \
    {                                                                                              \
        type old = *at;                                                                            \
        *at = old == expected ? value : old;                                                       \
        return old;                                                                                \
    }
ATOMICS(int, unsigned)
ATOMICS(unsigned, unsigned)
ATOMICS(unsigned long long, unsigned long long)
ATOMIC(atomicAdd, float, old + value)
ATOMIC(atomicAdd, double, old + value)
ATOMIC(atomicExch, float, value)
#undef ATOMIC
#undef WRAPPING
#undef ATOMICS

static inline void __threadfence()
{
}

/* ---- arithmetic ---- */

static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32);
}

static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}

static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}

static inline int __clz(int x)
{
    return x ? __builtin_clz(static_cast<unsigned>(x)) : 32;
}

static inline unsigned __float_as_uint(float x)
{
    unsigned bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float __uint_as_float(unsigned bits)
{
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
