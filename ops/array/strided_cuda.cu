/* SPDX-License-Identifier: Apache-2.0
 *
 * Dimensions that both sides traverse alike are merged. There are three cases: runs contiguous on
 * both sides, copied by packs; two dimensions that are transposed, through tiles in shared memory,
 * so that both sides are accessed contiguously; or single elements, in the order of writing.
 */
#include "ops/array/launchers_cuda.h"

#include "ops/device/types_cuda.cuh"

#define TILE 32
#define TILE_ROWS (CUDA_BLOCK / TILE)

struct copy_plan {
    int rank; /* >= 1; innermost first, by strides of the output */
    int64_t dims[CUDA_STRIDED_RANK], from[CUDA_STRIDED_RANK], to[CUDA_STRIDED_RANK], count;
};

static int64_t size_of(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

/* Sorts dimensions by output stride, then merges them. */
static copy_plan plan_of(const struct cuda_strided_copy *call)
{
    copy_plan plan = {};
    plan.count = 1;
    for (int d = call->rank - 1; d >= 0; d--) {
        plan.count *= call->dims[d];
        if (call->dims[d] == 1)
            continue;
        int at = plan.rank++;
        for (; at && size_of(plan.to[at - 1]) > size_of(call->to_strides[d]); at--) {
            plan.dims[at] = plan.dims[at - 1];
            plan.from[at] = plan.from[at - 1];
            plan.to[at] = plan.to[at - 1];
        }
        plan.dims[at] = call->dims[d];
        plan.from[at] = call->from_strides[d];
        plan.to[at] = call->to_strides[d];
    }
    int last = 0;
    for (int d = 1; d < plan.rank; d++) {
        if (plan.from[d] == plan.dims[last] * plan.from[last] &&
            plan.to[d] == plan.dims[last] * plan.to[last]) {
            plan.dims[last] *= plan.dims[d];
            continue;
        }
        last++;
        plan.dims[last] = plan.dims[d];
        plan.from[last] = plan.from[d];
        plan.to[last] = plan.to[d];
    }
    plan.rank = last + 1;
    if (!plan.dims[0])
        plan.dims[0] = 1;
    return plan;
}

/* Adds the offsets of element i of the dimensions from `first` on. */
DEVICE_INLINE void add_place(const copy_plan &plan, int first, int64_t i, int64_t &from,
                             int64_t &to)
{
    for (int d = first; d < plan.rank; d++) {
        int64_t rest = d + 1 < plan.rank ? i / plan.dims[d] : 0, index = i - rest * plan.dims[d];
        from += index * plan.from[d];
        to += index * plan.to[d];
        i = rest;
    }
}

template <typename T, int N>
static __global__ void copy(const copy_plan plan, const T *__restrict__ x, T *__restrict__ y)
{
    int64_t count = plan.count / N;
    for (int64_t i = thread_index(); i < count; i += thread_count()) {
        int64_t from = 0, to = 0;
        add_place(plan, 0, i * N, from, to);
        store_pack(y + to, load_pack<N>(x + from));
    }
}

/* Dimension 0 is contiguous in the output, dimension 1 in the input. A tile's rows have one extra
 * element, so that its columns fall into different banks. */
template <typename T>
static __global__ void transpose(const copy_plan plan, const T *__restrict__ x, T *__restrict__ y)
{
    SHARED(T, tile, TILE * (TILE + 1));
    int column = threadIdx.x % TILE, row = threadIdx.x / TILE;
    int64_t across = (plan.dims[0] + TILE - 1) / TILE, down = (plan.dims[1] + TILE - 1) / TILE;
    int64_t tiles = plan.count / (plan.dims[0] * plan.dims[1]) * across * down;
    for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        int64_t first = t % across * TILE, second = t / across % down * TILE, from = 0, to = 0;
        add_place(plan, 2, t / across / down, from, to);
        for (int r = row; r < TILE; r += TILE_ROWS)
            if (first + r < plan.dims[0] && second + column < plan.dims[1])
                tile[r * (TILE + 1) + column] =
                    x[from + (first + r) * plan.from[0] + (second + column) * plan.from[1]];
        __syncthreads();
        for (int r = row; r < TILE; r += TILE_ROWS)
            if (first + column < plan.dims[0] && second + r < plan.dims[1])
                y[to + (first + column) * plan.to[0] + (second + r) * plan.to[1]] =
                    tile[column * (TILE + 1) + r];
        __syncthreads();
    }
}

template <typename T>
static bool is_packed(const copy_plan &plan, const struct cuda_strided_copy *call, int n)
{
    bool packed = plan.from[0] == 1 && plan.to[0] == 1 && plan.dims[0] % n == 0 &&
                  is_aligned(call->from, sizeof(T) * n) && is_aligned(call->to, sizeof(T) * n);
    for (int d = 1; d < plan.rank; d++)
        packed = packed && plan.from[d] % n == 0 && plan.to[d] % n == 0;
    return packed;
}

/* Moves the dimension that is contiguous in the input to position 1, if there is one large
 * enough. */
static bool is_transpose(copy_plan &plan)
{
    if (plan.rank < 2 || plan.to[0] != 1 || plan.from[0] == 1 || plan.dims[0] < TILE / 2)
        return false;
    for (int d = 1; d < plan.rank; d++) {
        if (plan.from[d] != 1 || plan.dims[d] < TILE / 2)
            continue;
        int64_t dim = plan.dims[d], to = plan.to[d];
        for (; d > 1; d--) {
            plan.dims[d] = plan.dims[d - 1];
            plan.from[d] = plan.from[d - 1];
            plan.to[d] = plan.to[d - 1];
        }
        plan.dims[1] = dim;
        plan.from[1] = 1;
        plan.to[1] = to;
        return true;
    }
    return false;
}

template <typename T>
static int launch(const struct cuda_strided_copy *call, struct CUstream_st *stream)
{
    constexpr int N = 16 / sizeof(T);
    copy_plan plan = plan_of(call);
    const T *x = static_cast<const T *>(call->from);
    T *y = static_cast<T *>(call->to);
    if (!plan.count)
        return 0;
    if (is_packed<T>(plan, call, N))
        return CUDA_LAUNCH_EACH((copy<T, N>), plan.count / N, stream, plan, x, y);
    if (is_transpose(plan))
        return CUDA_LAUNCH_EACH(transpose<T>, plan.count / 4, stream, plan, x, y);
    return CUDA_LAUNCH_EACH((copy<T, 1>), plan.count, stream, plan, x, y);
}

extern "C" int cuda_strided(const struct cuda_strided_copy *call, struct CUstream_st *stream)
{
    return launch_by_size(call->element_bytes,
                          [&](auto e) { return launch<typename decltype(e)::type>(call, stream); });
}
