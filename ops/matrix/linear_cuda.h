/* SPDX-License-Identifier: Apache-2.0
 *
 * What linear algebra does beside the calls of libraries: triangles of square matrices, what
 * becomes of factors, and whether there are any. Matrices are float32 or float64, row-major and one
 * behind the other.
 */
#ifndef TF_OPS_MATRIX_LINEAR_CUDA_H
#define TF_OPS_MATRIX_LINEAR_CUDA_H

#include "ops/device/launch_cuda.h"

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
    void *to; /* may be `from`, but for CUDA_SYMMETRIC */
};

/* Of each matrix the product of the diagonal of its LU factors, with another sign for each row that
 * was exchanged, from the first on; 0 where a pivot is zero, behind which there may be anything. Of
 * no elements: 1, and nothing is read. */
struct cuda_determinant {
    enum cuda_type type;
    int64_t n, matrices;
    const void *factors;
    const int32_t *pivots, *infos; /* of cuSOLVER */
    void *out;
};

/* Leaves the fault, FAULT_PIVOT or FAULT_MINOR, where an info is not 0. */
struct cuda_infos {
    int64_t matrices;
    const int32_t *infos;
    uint16_t code;
    struct cuda_fault fault;
};

/* Leaves FAULT_DIAGONAL where a diagonal has a zero. */
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

#endif
