/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows that the host knows the numbers of: DynamicPartition and DynamicStitch.
 */
#ifndef TF_OPS_ARRAY_ROW_MOVES_CUDA_H
#define TF_OPS_ARRAY_ROW_MOVES_CUDA_H

#include "ops/device/launch_cuda.h"

#define CUDA_ROW_MOVES 224 /* of one launch: what its arguments have room for */

struct cuda_row_move {
    int64_t to, from; /* rows */
};

/* Each row of `to` is written once at most. */
struct cuda_row_moves {
    int element_bytes; /* 1, 2, 4 or 8 */
    int n;
    int64_t columns;
    const void *from;
    void *to; /* overlaps what is read nowhere */
    struct cuda_row_move rows[CUDA_ROW_MOVES];
};

CUDA_C int cuda_move_rows(const struct cuda_row_moves *call, struct CUstream_st *stream);

#endif
