/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of elements by their size, from one arrangement to another: Transpose, Slice,
 * StridedSlice, Reverse, Tile, Concat, Split, Pack, Unpack, and the inside of Pad, each a call or a
 * call per part.
 */
#ifndef TF_OPS_ARRAY_STRIDED_CUDA_H
#define TF_OPS_ARRAY_STRIDED_CUDA_H

#include "ops/device/launch_cuda.h"

#define CUDA_STRIDED_RANK (2 * CUDA_RANK_MAX) /* a tile has two dimensions of each */

/* Element [i, j, ...] goes from `from` + i * from_strides[0] + ... to `to` + i * to_strides[0] +
 * ... Strides are in elements, 0 and negative ones too; to_strides have each element written once.
 */
struct cuda_strided {
    int element_bytes; /* 1, 2, 4 or 8 */
    int rank;
    int64_t dims[CUDA_STRIDED_RANK];
    int64_t from_strides[CUDA_STRIDED_RANK], to_strides[CUDA_STRIDED_RANK];
    const void *from;
    void *to; /* overlaps what is read nowhere */
};

CUDA_C int cuda_strided(const struct cuda_strided *call, struct CUstream_st *stream);

#endif
