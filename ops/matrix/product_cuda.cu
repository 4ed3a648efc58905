/* SPDX-License-Identifier: Apache-2.0
 *
 * A block computes a square tile of the result, a thread one element. Tiles of both operands are
 * copied to shared memory, so that each of their elements is read once per tile.
 */
#include "ops/device/types_cuda.cuh"
#include "ops/matrix/launchers_cuda.h"

#define TILE 16

template <typename T> struct product_args {
    int64_t m, n, k, batches;
    bool transpose_a, transpose_b;
    const T *a, *b;
    T *c;
    int64_t columns, tiles; /* tiles in a row, and in all matrices */
};

/* Returns element [i, j] of the matrix [rows, columns], or 0 outside of it. */
template <typename T>
DEVICE_INLINE twin<T> element_of(const T *matrix, bool transposed, int64_t rows, int64_t columns,
                                 int64_t i, int64_t j)
{
    if (i >= rows || j >= columns)
        return 0;
    return static_cast<twin<T>>(matrix[transposed ? j * rows + i : i * columns + j]);
}

template <typename T> static __global__ void multiply(const product_args<T> args)
{
    SHARED(twin<T>, a, TILE * TILE);
    SHARED(twin<T>, b, TILE * TILE);
    int x = threadIdx.x % TILE, y = threadIdx.x / TILE;
    int64_t rows = (args.m + TILE - 1) / TILE;
    for (int64_t tile = blockIdx.x; tile < args.tiles; tile += gridDim.x) {
        int64_t batch = tile / args.columns / rows;
        int64_t i = tile / args.columns % rows * TILE + y, j = tile % args.columns * TILE + x;
        const T *from_a = args.a + batch * args.m * args.k;
        const T *from_b = args.b + batch * args.k * args.n;
        uint64_t sum = 0;
        for (int64_t k = 0; k < args.k; k += TILE) {
            a[threadIdx.x] = element_of(from_a, args.transpose_a, args.m, args.k, i, k + x);
            b[threadIdx.x] = element_of(from_b, args.transpose_b, args.k, args.n, k + y, j);
            __syncthreads();
            for (int l = 0; l < TILE; l++)
                sum += static_cast<uint64_t>(static_cast<twin<T>>(a[y * TILE + l])) *
                       static_cast<uint64_t>(static_cast<twin<T>>(b[l * TILE + x]));
            __syncthreads();
        }
        if (i < args.m && j < args.n)
            args.c[(batch * args.m + i) * args.n + j] = static_cast<T>(sum);
    }
}

template <typename T> static int launch(const struct cuda_product *call, struct CUstream_st *stream)
{
    product_args<T> args = {call->m,
                            call->n,
                            call->k,
                            call->batches,
                            call->transpose_a,
                            call->transpose_b,
                            static_cast<const T *>(call->a),
                            static_cast<const T *>(call->b),
                            static_cast<T *>(call->c),
                            (call->n + TILE - 1) / TILE,
                            0};
    args.tiles = args.columns * ((call->m + TILE - 1) / TILE) * call->batches;
    if (!args.tiles)
        return 0;
    unsigned grid = args.tiles > CUDA_GRID_MAX ? CUDA_GRID_MAX : static_cast<unsigned>(args.tiles);
    return CUDA_LAUNCH((multiply<T>), grid, TILE * TILE, 0, stream, args);
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
