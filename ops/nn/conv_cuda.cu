/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread per element written, adjacent for adjacent channels, so that reads and writes are
 * coalesced. Unrolling moves 16 bytes at once if a group's channels are a multiple of that.
 */
#include "ops/nn/launchers_cuda.h"

#include "ops/device/types_cuda.cuh"

#define WORD 16 /* bytes */

typedef pack<uint64_t, 2> word;

/* `channels` in elements of T. */
template <typename T>
static __global__ void unroll(const struct cuda_unroll call, const int64_t channels)
{
    const T *image = static_cast<const T *>(call.image);
    T *matrix = static_cast<T *>(call.matrix);
    int64_t n = call.batch * call.y.out * call.x.out * call.y.size * call.x.size * channels;
    int64_t own = channels / call.groups;
    for (int64_t i = thread_index(); i < n; i += thread_count()) {
        int64_t c = i % own, cell = i / own;
        int64_t kx = cell % call.x.size, ky = cell / call.x.size % call.y.size;
        int64_t position = cell / call.x.size / call.y.size;
        if (call.groups > 1) { /* saves two divisions where there is one */
            c += position % call.groups * own;
            position /= call.groups;
        }
        int64_t ox = position % call.x.out, oy = position / call.x.out % call.y.out;
        int64_t b = position / call.x.out / call.y.out;
        int64_t y = oy * call.y.stride - call.y.before + ky * call.y.dilation;
        int64_t x = ox * call.x.stride - call.x.before + kx * call.x.dilation;
        bool inside = y >= 0 && y < call.y.in && x >= 0 && x < call.x.in;
        matrix[i] = inside ? image[((b * call.y.in + y) * call.x.in + x) * channels + c] : T();
    }
}

/* Returns the window whose cell k lies at `in`; -1: there is none. */
DEVICE_INLINE int64_t window_at(const window_axis &axis, int64_t in, int64_t k)
{
    int64_t start = in + axis.before - k * axis.dilation;
    if (start < 0 || start % axis.stride)
        return -1;
    return start / axis.stride < axis.out ? start / axis.stride : -1;
}

template <typename T> static __global__ void roll(const struct cuda_unroll call)
{
    T *image = static_cast<T *>(call.image);
    const wide<T> *matrix = static_cast<const wide<T> *>(call.matrix);
    int64_t n = call.batch * call.y.in * call.x.in * call.channels;
    int64_t own = call.channels / call.groups;
    for (int64_t i = thread_index(); i < n; i += thread_count()) {
        int64_t c = i % call.channels, cell = i / call.channels, group = c / own;
        int64_t x = cell % call.x.in, y = cell / call.x.in % call.y.in;
        int64_t first = cell / call.x.in / call.y.in * call.y.out;
        double sum = 0;
        for (int64_t ky = 0; ky < call.y.size; ky++) {
            int64_t oy = window_at(call.y, y, ky);
            for (int64_t kx = 0; oy >= 0 && kx < call.x.size; kx++) {
                int64_t ox = window_at(call.x, x, kx);
                int64_t row = ((first + oy) * call.x.out + ox) * call.groups + group;
                if (ox >= 0)
                    sum += matrix[((row * call.y.size + ky) * call.x.size + kx) * own + c % own];
            }
        }
        image[i] = narrow<T>(static_cast<wide<T>>(sum));
    }
}

static unsigned blocks_for(const struct cuda_unroll *call, int64_t channels)
{
    return cuda_blocks(call->batch * call->y.out * call->x.out * call->y.size * call->x.size *
                       channels);
}

extern "C" int cuda_unroll(const struct cuda_unroll *call, struct CUstream_st *stream)
{
    return launch_by_float(call->type, [&](auto like) {
        typedef typename decltype(like)::type T;
        int64_t bytes = call->channels * static_cast<int64_t>(sizeof(T));
        if (bytes / call->groups % WORD == 0 && is_aligned(call->image, WORD) &&
            is_aligned(call->matrix, WORD))
            return CUDA_LAUNCH(unroll<word>, blocks_for(call, bytes / WORD), CUDA_BLOCK, 0, stream,
                               *call, bytes / WORD);
        else
            return CUDA_LAUNCH(unroll<T>, blocks_for(call, call->channels), CUDA_BLOCK, 0, stream,
                               *call, call->channels);
    });
}

extern "C" int cuda_roll(const struct cuda_unroll *call, struct CUstream_st *stream)
{
    return launch_by_float(call->type, [&](auto like) {
        typedef typename decltype(like)::type T;
        return CUDA_LAUNCH_EACH(roll<T>, call->batch * call->y.in * call->x.in * call->channels,
                                stream, *call);
    });
}
