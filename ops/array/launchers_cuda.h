/* SPDX-License-Identifier: Apache-2.0
 *
 * The launchers of the .cu files of arrays, and their arguments.
 */
#ifndef TF_OPS_ARRAY_LAUNCHERS_CUDA_H
#define TF_OPS_ARRAY_LAUNCHERS_CUDA_H

#include <stddef.h>

#include "ops/device/launch_cuda.h"

/* ---- strided ----
 *
 * Copies of elements, by size, from one memory arrangement to another: Transpose, Slice,
 * StridedSlice, Reverse, Tile, Concat, Split, Pack, Unpack, and the inside of Pad, each by one
 * call, or one per part. */

#define CUDA_STRIDED_RANK (2 * CUDA_RANK_MAX) /* a tile has two dimensions of each */

/* Element [i, j, ...] goes from `from` + i * from_strides[0] + ... to `to` + i * to_strides[0] +
 * ... Strides are in elements, may be 0 or negative; by to_strides each element is written once.
 */
struct cuda_strided_copy {
    int element_bytes; /* 1, 2, 4 or 8 */
    int rank;
    int64_t dims[CUDA_STRIDED_RANK];
    int64_t from_strides[CUDA_STRIDED_RANK], to_strides[CUDA_STRIDED_RANK];
    const void *from;
    void *to; /* does not overlap what is read */
};

CUDA_C int cuda_strided(const struct cuda_strided_copy *call, struct CUstream_st *stream);

/* ---- rows ----
 *
 * Rows of a table by number: Gather, scatter updates, segment sums and OneHot. */

struct cuda_indices {
    enum cuda_type type; /* CUDA_INT32, CUDA_INT64; of OneHot CUDA_INT8 and CUDA_UINT8, too */
    int64_t n;
    const void *data;
};

/* out[i] = table[indices[i]]; FAULT_INDEX if an index is out of range. */
struct cuda_gather {
    int element_bytes; /* 1, 2, 4 or 8 */
    int64_t rows, columns;
    struct cuda_indices indices;
    const void *table;
    void *out;
    struct cuda_fault fault;
};

enum cuda_scatter_op { CUDA_SCATTER_ADD, CUDA_SCATTER_SUB, CUDA_SCATTER_SET };

/* table[indices[i]] op= values[i], in the order of i, for any order of threads: floats for one row
 * are added in float64; with CUDA_SCATTER_SET the last one stays. If an index is out of range, or
 * the step has already failed, nothing is changed. */
struct cuda_scatter {
    enum cuda_scatter_op op;
    enum cuda_type type;
    int64_t rows, columns;
    struct cuda_indices indices;
    const void *values; /* [n, columns] */
    void *table;
    void *scratch; /* cuda_scatter_scratch bytes, aligned to 16 */
    struct cuda_fault fault;
};

/* [outer, inner] indices to [outer, depth, inner]; an index outside the depth gives only `off`. */
struct cuda_one_hot {
    int element_bytes;
    int64_t outer, depth, inner;
    struct cuda_indices indices;
    const void *on, *off; /* one each, on the device */
    void *out;
};

CUDA_C int cuda_gather(const struct cuda_gather *call, struct CUstream_st *stream);
CUDA_C size_t cuda_scatter_scratch(int64_t n);
CUDA_C int cuda_scatter(const struct cuda_scatter *call, struct CUstream_st *stream);
CUDA_C int cuda_one_hot(const struct cuda_one_hot *call, struct CUstream_st *stream);

/* ---- row moves ----
 *
 * Moves rows whose numbers the host knows: DynamicPartition and DynamicStitch. */

#define CUDA_ROW_MOVES 224 /* per launch: what fits in its arguments */

struct cuda_row_move {
    int64_t to, from; /* rows */
};

/* Each row of `to` is written at most once. */
struct cuda_row_moves {
    int element_bytes; /* 1, 2, 4 or 8 */
    int n;
    int64_t columns;
    const void *from;
    void *to; /* does not overlap what is read */
    struct cuda_row_move rows[CUDA_ROW_MOVES];
};

CUDA_C int cuda_move_rows(const struct cuda_row_moves *call, struct CUstream_st *stream);

/* ---- range ----
 *
 * Arithmetic progressions: element i is start + i * delta, computed in the wide type, in which
 * integers wrap around. */

struct cuda_range {
    enum cuda_type type; /* a real one */
    int64_t n;
    const void *start, *delta; /* one each, on the host; read before the launcher returns */
    void *out;
};

CUDA_C int cuda_range(const struct cuda_range *call, struct CUstream_st *stream);

/* ---- check numerics ----
 *
 * CheckNumerics: floats are checked, not changed. */

/* Reports FAULT_NOT_FINITE for the first NaN or infinity. */
struct cuda_check_numerics {
    enum cuda_type type; /* a floating one */
    int64_t n;
    const void *x;
    struct cuda_fault fault;
};

CUDA_C int cuda_check_numerics(const struct cuda_check_numerics *call, struct CUstream_st *stream);

#endif
