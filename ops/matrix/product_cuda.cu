/* SPDX-License-Identifier: Apache-2.0
 *
 * A block computes a square tile of the result, a thread one element. Tiles of both operands are
 * copied to shared memory, so that each of their elements is read once per tile.
 */
#include "ops/device/types_cuda.cuh"
#include "ops/matrix/launchers_cuda.h"

#define TILE 16

/* Returns element [i, j] of the matrix [rows, columns], or 0 outside of it. */
template <typename T>
DEVICE_INLINE twin<T> element_of(const T *matrix, bool transposed, int64_t rows, int64_t columns,
                                 int64_t i, int64_t j)
{
    if (i >= rows || j >= columns)
        return 0;
    return static_cast<twin<T>>(matrix[transposed ? j * rows + i : i * columns + j]);
}

/* `columns` of tiles in a row, and `tiles` in all matrices. */
template <typename T>
static __global__ void multiply(const struct cuda_product call, int64_t columns, int64_t tiles)
{
    SHARED(twin<T>, a, TILE * TILE);
    SHARED(twin<T>, b, TILE * TILE);
    int x = threadIdx.x % TILE, y = threadIdx.x / TILE;
    const product_sizes &p = call.sizes;
    int64_t rows = (p.m + TILE - 1) / TILE;
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        int64_t batch = tile / columns / rows;
        int64_t i = tile / columns % rows * TILE + y, j = tile % columns * TILE + x;
        const T *from_a = static_cast<const T *>(call.a) + batch * p.m * p.k;
        const T *from_b = static_cast<const T *>(call.b) + batch * p.k * p.n;
        uint64_t sum = 0;
        for (int64_t k = 0; k < p.k; k += TILE) {
            a[threadIdx.x] = element_of(from_a, p.flags.transpose_a, p.m, p.k, i, k + x);
            b[threadIdx.x] = element_of(from_b, p.flags.transpose_b, p.k, p.n, k + y, j);
            __syncthreads();
            for (int l = 0; l < TILE; l++)
                sum += static_cast<uint64_t>(static_cast<twin<T>>(a[y * TILE + l])) *
                       static_cast<uint64_t>(static_cast<twin<T>>(b[l * TILE + x]));
            __syncthreads();
        }
        if (i < p.m && j < p.n)
            static_cast<T *>(call.c)[(batch * p.m + i) * p.n + j] = static_cast<T>(sum);
    }
}

template <typename T> static int launch(const struct cuda_product *call, struct CUstream_st *stream)
{
    const product_sizes &p = call->sizes;
    int64_t columns = (p.n + TILE - 1) / TILE;
    int64_t tiles = columns * ((p.m + TILE - 1) / TILE) * p.batches;
    if (!tiles)
        return 0;
    unsigned grid = tiles > CUDA_GRID_MAX ? CUDA_GRID_MAX : static_cast<unsigned>(tiles);
    return CUDA_LAUNCH((multiply<T>), grid, TILE * TILE, 0, stream, *call, columns, tiles);
}

extern "C" int cuda_product(const struct cuda_product *call, struct CUstream_st *stream)
{
    return launch_by_number(call->type, [&](auto e) {
        typedef typename decltype(e)::type type;
        if constexpr (is_floating<type>)
            return CUDA_INVALID_VALUE;
        else
            return launch<type>(call, stream);
    });
}
