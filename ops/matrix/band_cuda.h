/* SPDX-License-Identifier: Apache-2.0
 *
 * MatrixBandPart: elements by their size, and zeros.
 */
#ifndef TF_OPS_MATRIX_BAND_CUDA_H
#define TF_OPS_MATRIX_BAND_CUDA_H

#include "ops/device/launch_cuda.h"

/* Element [row, column] of each matrix stays if row - lower <= column <= row + upper. */
struct cuda_band {
    int element_bytes; /* 1, 2, 4 or 8 */
    int64_t n;         /* of all elements */
    int64_t rows, columns;
    int64_t lower, upper; /* 0 to `rows`, 0 to `columns` */
    const void *x;
    void *y; /* may be x */
};

CUDA_C int cuda_band(const struct cuda_band *call, struct CUstream_st *stream);

#endif
