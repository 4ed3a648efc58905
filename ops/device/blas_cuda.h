/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products of floats, and triangular systems, by cuBLAS. The library is found by name at the
 * first request. This is included only by files whose names end in _cuda.c, and by the tests' own
 * module, which implements the same calls with loops. Its workspace is permanent, so that products
 * may be captured.
 */
#ifndef TF_OPS_DEVICE_BLAS_CUDA_H
#define TF_OPS_DEVICE_BLAS_CUDA_H

#include "exec/device/kernel.h"
#include "ops/device/launch_cuda.h"
#include "ops/device/library_cuda.h"

struct cuda_device;

/* C = op(A) op(B) for each of `batches`, as in cuBLAS: all column-major, op(A) is [m,k], op(B)
 * [k,n]; ld...: elements from one column to the next; step...: from one matrix to the next. A sum
 * over no elements is 0. */
struct cuda_gemm {
    enum cuda_type type; /* a float; 16-bit types are summed in float32 */
    bool transpose_a, transpose_b;
    bool accumulate;  /* the product is added to C */
    bool wide_result; /* C is float32 although `type` has 16 bits */
    bool tf32;        /* device option, set by cuda_blas_gemm: float32 may be rounded to TF32 */
    int64_t m, n, k, batches;
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc, step_a, step_b, step_c;
};

/* op(A) X = B or, with A on the right, X op(A) = B for each of `batches`: all column-major, A is
 * triangular, X replaces B, which is [m,n]. */
struct cuda_trsm {
    enum cuda_type type; /* float32 or float64 */
    bool right, upper, transpose;
    int64_t m, n, batches;
    const void *a;
    void *b;
    int64_t lda, ldb, step_a, step_b;
};

/* The library functions that are called. Functions that return an int return a cublasStatus_t. */
struct cuda_blas {
    struct cuda_library_calls calls;
    int (*gemm)(void *handle, const struct cuda_gemm *gemm);
    int (*trsm)(void *handle, const struct cuda_trsm *trsm);
};

extern const struct cuda_blas cuda_blas_real;

/* Opens the library; prepare calls it before the first product. */
int cuda_blas_open(struct cuda_device *d, struct error *err);

/* Return KERNEL_ENQUEUED, or an error. Thread-safe. */
int cuda_blas_gemm(struct kernel_call *call, const struct cuda_gemm *gemm);
int cuda_blas_trsm(struct kernel_call *call, const struct cuda_trsm *trsm);

#endif
