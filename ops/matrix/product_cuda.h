/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of matrices of integers, which wrap around: cuBLAS has none.
 */
#ifndef TF_OPS_MATRIX_PRODUCT_CUDA_H
#define TF_OPS_MATRIX_PRODUCT_CUDA_H

#include <stdbool.h>

#include "ops/device/launch_cuda.h"

/* Row-major: [batches, m, n] of op(A) [batches, m, k] and op(B) [batches, k, n]. */
struct cuda_product {
    enum cuda_type type; /* an integer */
    bool transpose_a, transpose_b;
    int64_t m, n, k, batches;
    const void *a, *b;
    void *c; /* overlaps neither */
};

CUDA_C int cuda_product(const struct cuda_product *call, struct CUstream_st *stream);

#endif
