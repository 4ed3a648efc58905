/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a table by number: Gather, scatter updates, segment sums and OneHot.
 */
#ifndef TF_OPS_ARRAY_ROWS_CUDA_H
#define TF_OPS_ARRAY_ROWS_CUDA_H

#include <stddef.h>

#include "ops/device/launch_cuda.h"

struct cuda_indices {
    enum cuda_type type; /* CUDA_INT32, CUDA_INT64; of OneHot CUDA_INT8 and CUDA_UINT8, too */
    int64_t n;
    const void *data;
};

/* out[i] = table[indices[i]]; FAULT_INDEX of what is no row. */
struct cuda_gather {
    int element_bytes; /* 1, 2, 4 or 8 */
    int64_t rows, columns;
    struct cuda_indices indices;
    const void *table;
    void *out;
    struct cuda_fault fault;
};

enum cuda_scatter_op { CUDA_SCATTER_ADD, CUDA_SCATTER_SUB, CUDA_SCATTER_SET };

/* table[indices[i]] op= values[i], in the order of i, whatever the order of threads: the rows for
 * one place are added in float64 if they are floats; of CUDA_SCATTER_SET the last one stays. If an
 * index is no row, or the step has failed before, nothing is changed. */
struct cuda_scatter {
    enum cuda_scatter_op op;
    enum cuda_type type;
    int64_t rows, columns;
    struct cuda_indices indices;
    const void *values; /* [n, columns] */
    void *table;
    void *scratch; /* cuda_scatter_scratch bytes, at a multiple of 16 */
    struct cuda_fault fault;
};

/* [outer, inner] indices to [outer, depth, inner]; what is no index of the depth is all off. */
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

#endif
