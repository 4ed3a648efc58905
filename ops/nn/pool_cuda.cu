/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread per element of the result. The gradient of a cell is gathered from the windows that
 * cover it, in order, so that no two threads add to one element.
 */
#include "ops/nn/launchers_cuda.h"

#include <cmath>

#include "ops/device/types_cuda.cuh"

namespace
{
/* A range of cells: from the first to the one after the last. */
struct span {
    int64_t from, to;
};

/* The coordinates of an element. */
struct place {
    int64_t plane, y, x, channel;
};
} // namespace

/* Returns the cells of the window at `out` that are inside the image. */
DEVICE_INLINE span cells_of(const window_axis &w, int64_t out)
{
    int64_t start = out * w.stride - w.before, end = start + w.size;
    return {start < 0 ? 0 : start, end > w.in ? w.in : end};
}

/* Returns the windows that cover the cell at `in`. */
DEVICE_INLINE span windows_over(const window_axis &w, int64_t in)
{
    int64_t at = in + w.before, first = at - w.size + 1;
    int64_t end = at / w.stride + 1;
    return {first <= 0 ? 0 : (first + w.stride - 1) / w.stride, end > w.out ? w.out : end};
}

DEVICE_INLINE place place_of(int64_t i, int64_t height, int64_t width, int64_t block)
{
    int64_t cell = i / block, row = cell / width;
    return {row / height, row % height, cell % width, i % block};
}

DEVICE_INLINE int64_t image_at(const struct cuda_pool &call, const place &p, int64_t y, int64_t x)
{
    return ((p.plane * call.y.in + y) * call.x.in + x) * call.block + p.channel;
}

DEVICE_INLINE int64_t output_at(const struct cuda_pool &call, const place &p, int64_t y, int64_t x)
{
    return ((p.plane * call.y.out + y) * call.x.out + x) * call.block + p.channel;
}

template <typename W> DEVICE_INLINE bool is_largest(W x, W largest)
{
    return x == largest || (x != x && largest != largest);
}

template <typename T> DEVICE_INLINE T max_of(const struct cuda_pool &call, const place &p)
{
    typedef wide<T> W;
    const T *x = static_cast<const T *>(call.image);
    span y = cells_of(call.y, p.y), columns = cells_of(call.x, p.x);
    W most = limits_of<W>::least;
    if constexpr (is_floating<T>)
        most = -INFINITY;
    for (int64_t i = y.from; i < y.to; i++)
        for (int64_t k = columns.from; k < columns.to; k++) {
            W value = widen(x[image_at(call, p, i, k)]);
            most = value > most || value != value ? value : most;
        }
    return narrow<T>(most);
}

/* Returns the index in the image of a window's first cell with its largest value; -1: none. */
template <typename T>
DEVICE_INLINE int64_t first_largest(const struct cuda_pool &call, const place &window)
{
    const T *x = static_cast<const T *>(call.image);
    span y = cells_of(call.y, window.y), columns = cells_of(call.x, window.x);
    wide<T> most =
        widen(static_cast<const T *>(call.output)[output_at(call, window, window.y, window.x)]);
    for (int64_t i = y.from; i < y.to; i++)
        for (int64_t k = columns.from; k < columns.to; k++) {
            int64_t at = image_at(call, window, i, k);
            if (is_largest(widen(x[at]), most))
                return at;
        }
    return -1;
}

template <typename T> DEVICE_INLINE T max_grad_of(const struct cuda_pool &call, const place &p)
{
    typedef twin<wide<T>> W;
    const T *g = static_cast<const T *>(call.gradient);
    int64_t here = image_at(call, p, p.y, p.x);
    span y = windows_over(call.y, p.y), columns = windows_over(call.x, p.x);
    W sum = 0;
    for (int64_t i = y.from; i < y.to; i++)
        for (int64_t k = columns.from; k < columns.to; k++)
            if (first_largest<T>(call, {p.plane, i, k, p.channel}) == here)
                sum += static_cast<W>(widen(g[output_at(call, p, i, k)]));
    return narrow<T>(static_cast<wide<T>>(sum));
}

template <typename T> DEVICE_INLINE T max_grad_grad_of(const struct cuda_pool &call, const place &p)
{
    int64_t at = first_largest<T>(call, p);
    return at < 0 ? narrow<T>(0) : static_cast<const T *>(call.gradient)[at];
}

template <typename T> DEVICE_INLINE T mean_of(const struct cuda_pool &call, const place &p)
{
    typedef wide<T> W;
    const T *x = static_cast<const T *>(call.image);
    span y = cells_of(call.y, p.y), columns = cells_of(call.x, p.x);
    double sum = 0; /* of the row sums of the window */
    for (int64_t i = y.from; i < y.to; i++) {
        W row = 0;
        for (int64_t k = columns.from; k < columns.to; k++)
            row += widen(x[image_at(call, p, i, k)]);
        sum += row;
    }
    W count = static_cast<W>((y.to - y.from) * (columns.to - columns.from));
    return narrow<T>(static_cast<W>(sum) / count);
}

template <typename T> DEVICE_INLINE T mean_grad_of(const struct cuda_pool &call, const place &p)
{
    typedef wide<T> W;
    const T *g = static_cast<const T *>(call.gradient);
    span y = windows_over(call.y, p.y), columns = windows_over(call.x, p.x);
    W sum = 0;
    for (int64_t i = y.from; i < y.to; i++) {
        span rows = cells_of(call.y, i);
        for (int64_t k = columns.from; k < columns.to; k++) {
            span cells = cells_of(call.x, k);
            W count = static_cast<W>((rows.to - rows.from) * (cells.to - cells.from));
            sum += widen(g[output_at(call, p, i, k)]) / count;
        }
    }
    return narrow<T>(sum);
}

template <int kind> constexpr bool is_to_image = kind == POOL_MAX_GRAD || kind == POOL_AVG_GRAD;

template <int kind, typename T> static __global__ void pool(const struct cuda_pool call)
{
    int64_t height = is_to_image<kind> ? call.y.in : call.y.out;
    int64_t width = is_to_image<kind> ? call.x.in : call.x.out;
    int64_t n = call.planes * height * width * call.block;
    T *result = static_cast<T *>(call.result);
    for (int64_t i = thread_index(); i < n; i += thread_count()) {
        place p = place_of(i, height, width, call.block);
        if constexpr (kind == POOL_MAX)
            result[i] = max_of<T>(call, p);
        else if constexpr (kind == POOL_MAX_GRAD)
            result[i] = max_grad_of<T>(call, p);
        else if constexpr (kind == POOL_MAX_GRAD_GRAD)
            result[i] = max_grad_grad_of<T>(call, p);
        else if constexpr (kind == POOL_AVG)
            result[i] = mean_of<T>(call, p);
        else
            result[i] = mean_grad_of<T>(call, p);
    }
}

template <int kind> static int launch(const struct cuda_pool *call, struct CUstream_st *stream)
{
    int64_t cells = is_to_image<kind> ? call->y.in * call->x.in : call->y.out * call->x.out;
    int64_t n = call->planes * cells * call->block;
    return launch_by_number(call->type, [&](auto like) {
        typedef typename decltype(like)::type T;
        if constexpr (kind >= POOL_AVG && !is_floating<T>)
            return CUDA_INVALID_VALUE;
        else
            return CUDA_LAUNCH_EACH((pool<kind, T>), n, stream, *call);
    });
}

extern "C" int cuda_pool(const struct cuda_pool *call, struct CUstream_st *stream)
{
    if (call->kind >= POOL_WITH_PLACE)
        return cuda_pool_place(call, stream);
    return launch_by_form<POOL_AVG_GRAD + 1>(
        call->kind, [&](auto kind) { return launch<decltype(kind)::value>(call, stream); });
}
