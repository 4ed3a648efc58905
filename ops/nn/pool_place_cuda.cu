/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread per window, or cell of the image, and per 16 bytes of channels if these are aligned.
 * Indices have 32 bits, and their divisors are prepared on the host: planes are launched in parts
 * small enough for this.
 */
#include "ops/nn/launchers_cuda.h"

#include <cmath>

#include "ops/device/types_cuda.cuh"

#define ELEMENTS_MAX (int64_t{1} << 31) /* of a launch, in image and output */

namespace
{
/* For n below 2^31, n / by is (the upper half of n * factor, plus n) >> shift. */
struct divisor {
    uint32_t by, factor, shift;
};

struct axis {
    int in, size, stride, before, out;
    divisor by_stride;
};

struct places {
    axis y, x;
    uint32_t n;                   /* threads */
    divisor packs, width, height; /* of the items that have a thread each */
    int block, masked;
};
} // namespace

static divisor divisor_of(int64_t by)
{
    uint32_t shift = 0;
    while ((uint64_t{1} << shift) < static_cast<uint64_t>(by))
        shift++;
    uint64_t most = (uint64_t{1} << shift) - static_cast<uint64_t>(by);
    uint64_t factor = (most << 32) / static_cast<uint64_t>(by) + 1;
    return {static_cast<uint32_t>(by), static_cast<uint32_t>(factor), shift};
}

DEVICE_INLINE uint32_t divide(uint32_t n, const divisor &d)
{
    return (static_cast<uint32_t>(static_cast<uint64_t>(n) * d.factor >> 32) + n) >> d.shift;
}

/* Returns the remainder of `n`, which becomes the quotient. */
DEVICE_INLINE int take_rest(uint32_t &n, const divisor &d)
{
    uint32_t quotient = divide(n, d), rest = n - quotient * d.by;
    n = quotient;
    return static_cast<int>(rest);
}

/* A NaN is the largest; of several, the last gives the value, the first the place. */
template <int N, typename T>
static __global__ void pool_places(const places p, const T *image, T *result, uint8_t *place)
{
    for (int64_t i = thread_index(); i < p.n; i += thread_count()) {
        uint32_t rest = static_cast<uint32_t>(i);
        int channel = take_rest(rest, p.packs) * N;
        int ox = take_rest(rest, p.width), oy = take_rest(rest, p.height);
        int y = oy * p.y.stride - p.y.before, x = ox * p.x.stride - p.x.before;
        int top = y < 0 ? -y : 0, bottom = y + p.y.size > p.y.in ? p.y.in - y : p.y.size;
        int left = x < 0 ? -x : 0, right = x + p.x.size > p.x.in ? p.x.in - x : p.x.size;
        int first = top < bottom && left < right ? top * p.x.size + left : POOL_NO_PLACE;
        wide<T> most[N];
        int where[N];
        for (int k = 0; k < N; k++) {
            most[k] = -INFINITY;
            where[k] = first;
        }
        for (int dy = top; dy < bottom; dy++) {
            int row = (static_cast<int>(rest) * p.y.in + y + dy) * p.x.in + x;
            for (int dx = left; dx < right; dx++) {
                auto values =
                    load_pack<N>(image + static_cast<int64_t>(row + dx) * p.block + channel);
                for (int k = 0; k < N; k++) {
                    wide<T> value = widen(values.at[k]);
                    bool is_more = value > most[k] || value != value;
                    where[k] = is_more && most[k] == most[k] ? dy * p.x.size + dx : where[k];
                    most[k] = is_more ? value : most[k];
                }
            }
        }
        pack<T, N> out;
        pack<uint8_t, N> at;
        for (int k = 0; k < N; k++) {
            out.at[k] = narrow<T>(most[k]);
            at.at[k] = static_cast<uint8_t>(p.masked && !(most[k] > 0) ? POOL_NO_PLACE : where[k]);
        }
        int64_t to = i * N;
        store_pack(result + to, out);
        store_pack(place + to, at);
    }
}

/* Return the first window over the cell at `in`, and the one after the last. */
DEVICE_INLINE int first_over(const axis &a, int in)
{
    int at = in + a.before - a.size + a.stride;
    return at < 0 ? 0 : static_cast<int>(divide(static_cast<uint32_t>(at), a.by_stride));
}

DEVICE_INLINE int end_over(const axis &a, int in)
{
    int end = static_cast<int>(divide(static_cast<uint32_t>(in + a.before), a.by_stride)) + 1;
    return end > a.out ? a.out : end;
}

/* A cell adds the gradients of its windows in their order, which is the CPU's. */
template <int N, typename T>
static __global__ void gather_places(const places p, const T *gradient, const uint8_t *place,
                                     T *result)
{
    for (int64_t i = thread_index(); i < p.n; i += thread_count()) {
        uint32_t rest = static_cast<uint32_t>(i);
        int channel = take_rest(rest, p.packs) * N;
        int x = take_rest(rest, p.width), y = take_rest(rest, p.height);
        int left = first_over(p.x, x), right = end_over(p.x, x), bottom = end_over(p.y, y);
        wide<T> sum[N];
        for (int k = 0; k < N; k++)
            sum[k] = 0;
        for (int oy = first_over(p.y, y); oy < bottom; oy++) {
            int row = (static_cast<int>(rest) * p.y.out + oy) * p.x.out;
            int number = (y + p.y.before - oy * p.y.stride) * p.x.size + x + p.x.before;
            for (int ox = left; ox < right; ox++) {
                int64_t at = static_cast<int64_t>(row + ox) * p.block + channel;
                auto where = load_pack<N>(place + at);
                auto flows = load_pack<N>(gradient + at);
                for (int k = 0; k < N; k++)
                    if (where.at[k] == number - ox * p.x.stride)
                        sum[k] += widen(flows.at[k]);
            }
        }
        pack<T, N> out;
        for (int k = 0; k < N; k++)
            out.at[k] = narrow<T>(sum[k]);
        store_pack(result + i * N, out);
    }
}

static axis axis_of(const window_axis &w)
{
    return {static_cast<int>(w.in),     static_cast<int>(w.size), static_cast<int>(w.stride),
            static_cast<int>(w.before), static_cast<int>(w.out),  divisor_of(w.stride)};
}

/* Calls `launch` with each part of the planes: the number of its first plane, and the part. */
template <typename Launch>
static int in_parts(const struct cuda_pool *call, bool to_image, int pack, Launch launch)
{
    int64_t image = call->y.in * call->x.in, output = call->y.out * call->x.out;
    int64_t cells = to_image ? image : output, packs = call->block / pack;
    int64_t most = (image > output ? image : output) * call->block;
    int64_t step = most < ELEMENTS_MAX ? (ELEMENTS_MAX - 1) / (most ? most : 1) : 0;
    int result = step ? 0 : CUDA_INVALID_VALUE;
    bool is_empty = !cells || !packs;
    for (int64_t plane = 0; step && !is_empty && plane < call->planes && !result; plane += step) {
        int64_t n = call->planes - plane < step ? call->planes - plane : step;
        places p = {axis_of(call->y),
                    axis_of(call->x),
                    static_cast<uint32_t>(n * cells * packs),
                    divisor_of(packs),
                    divisor_of(to_image ? call->x.in : call->x.out),
                    divisor_of(to_image ? call->y.in : call->y.out),
                    static_cast<int>(call->block),
                    call->masked};
        result = launch(p, plane * image * call->block, plane * output * call->block);
    }
    return result;
}

/* Returns whether all packs of N elements are aligned to their size. */
template <int N, typename T> static bool can_pack(const struct cuda_pool *call, const T *like)
{
    return call->block % N == 0 && is_aligned(like, N * sizeof(T)) &&
           is_aligned(call->result, N * sizeof(T)) && is_aligned(call->place, N);
}

template <int N, typename T>
static int launch_forward(const struct cuda_pool *call, struct CUstream_st *stream)
{
    return in_parts(call, false, N, [&](const places &p, int64_t image, int64_t output) {
        return CUDA_LAUNCH_EACH((pool_places<N, T>), p.n, stream, p,
                                static_cast<const T *>(call->image) + image,
                                static_cast<T *>(call->result) + output, call->place + output);
    });
}

template <int N, typename T>
static int launch_backward(const struct cuda_pool *call, struct CUstream_st *stream)
{
    return in_parts(call, true, N, [&](const places &p, int64_t image, int64_t output) {
        return CUDA_LAUNCH_EACH((gather_places<N, T>), p.n, stream, p,
                                static_cast<const T *>(call->gradient) + output,
                                static_cast<const uint8_t *>(call->place) + output,
                                static_cast<T *>(call->result) + image);
    });
}

extern "C" int cuda_pool_place(const struct cuda_pool *call, struct CUstream_st *stream)
{
    bool back = call->kind == POOL_PLACE_GRAD;
    return launch_by_float(call->type, [&](auto like) {
        typedef typename decltype(like)::type T;
        constexpr int N = 16 / sizeof(T);
        bool packs = can_pack<N>(call, static_cast<const T *>(back ? call->gradient : call->image));
        if (back)
            return packs ? launch_backward<N, T>(call, stream)
                         : launch_backward<1, T>(call, stream);
        return packs ? launch_forward<N, T>(call, stream) : launch_forward<1, T>(call, stream);
    });
}
