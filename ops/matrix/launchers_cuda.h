/* SPDX-License-Identifier: Apache-2.0
 *
 * The launchers of the .cu files of matrices, and their arguments.
 */
#ifndef TF_OPS_MATRIX_LAUNCHERS_CUDA_H
#define TF_OPS_MATRIX_LAUNCHERS_CUDA_H

#include <stdbool.h>

#include "ops/device/launch_cuda.h"
#include "ops/matrix/band.h"
#include "ops/matrix/product.h"

/* ---- linear ----
 *
 * What linear algebra needs besides library calls: triangles of square matrices, results from
 * factors, and checks that factors exist. Matrices are float32 or float64, row-major and
 * contiguous. */

enum cuda_square_form {
    CUDA_LOWER,        /* the lower triangle, zeros above it */
    CUDA_LOWER_HALVED, /* the same with half the diagonal */
    CUDA_SYMMETRIC,    /* half the sum of the matrix and its transpose */
    CUDA_IDENTITY,     /* ones on the diagonal, zeros elsewhere; nothing is read */
};

struct cuda_square {
    enum cuda_square_form form;
    enum cuda_type type;
    int64_t n, matrices;
    const void *from;
    void *to; /* may be `from`, except for CUDA_SYMMETRIC */
};

/* For each matrix, the product of the diagonal of its LU factors, from the first on, with the sign
 * changed for each row exchange; 0 if a pivot is zero, as values after it are undefined. Without
 * elements: 1, and nothing is read. */
struct cuda_determinant {
    enum cuda_type type;
    int64_t n, matrices;
    const void *factors;
    const int32_t *pivots, *infos; /* of cuSOLVER */
    void *out;
};

/* Reports the fault, FAULT_PIVOT or FAULT_MINOR, if an info is not 0. */
struct cuda_infos {
    int64_t matrices;
    const int32_t *infos;
    uint16_t code;
    struct cuda_fault fault;
};

/* Reports FAULT_DIAGONAL if a diagonal has a zero. */
struct cuda_diagonal {
    enum cuda_type type;
    int64_t n, matrices;
    const void *a;
    struct cuda_fault fault;
};

CUDA_C int cuda_square(const struct cuda_square *call, struct CUstream_st *stream);
CUDA_C int cuda_determinant(const struct cuda_determinant *call, struct CUstream_st *stream);
CUDA_C int cuda_check_infos(const struct cuda_infos *call, struct CUstream_st *stream);
CUDA_C int cuda_check_diagonal(const struct cuda_diagonal *call, struct CUstream_st *stream);

/* ---- product ----
 *
 * Products of integer matrices, which wrap around: cuBLAS has none. */

/* Row-major: [batches, m, n] of op(A) [batches, m, k] and op(B) [batches, k, n]. */
struct cuda_product {
    enum cuda_type type; /* an integer */
    struct product_sizes sizes;
    const void *a, *b;
    void *c; /* overlaps neither a nor b */
};

CUDA_C int cuda_product(const struct cuda_product *call, struct CUstream_st *stream);

/* ---- band ----
 *
 * MatrixBandPart: copies elements by size, or writes zeros. */

struct cuda_band {
    int element_bytes; /* 1, 2, 4 or 8 */
    int64_t n;         /* of all elements */
    struct band band;
    const void *x;
    void *y; /* may be x */
};

CUDA_C int cuda_band(const struct cuda_band *call, struct CUstream_st *stream);

#endif
