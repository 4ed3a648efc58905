/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products of floats, and equations with triangular matrices, by cuBLAS, whose library is
 * found by its name when the first one is asked for. Only files whose names end in _cuda.c include
 * this, and the tests' own module, which answers the same calls with loops.
 */
#ifndef TF_OPS_DEVICE_BLAS_CUDA_H
#define TF_OPS_DEVICE_BLAS_CUDA_H

#include "exec/device/kernel.h"
#include "ops/device/launch_cuda.h"

struct cuda_device;

/* C = op(A) op(B) for each of `batches`, as cuBLAS has it: all by columns, op(A) of [m,k], op(B) of
 * [k,n]; ld...: elements from one column to the next; step...: from one matrix to the next. A sum
 * over no elements is 0. */
struct cuda_gemm {
    enum cuda_type type; /* a float; those of 16 bits are added in float32 */
    bool transpose_a, transpose_b;
    bool accumulate;  /* C is added to; it holds values before */
    bool wide_result; /* C is of float32 where `type` has 16 bits */
    bool tf32;        /* of the device, set by cuda_blas_gemm: float32 may be rounded to TF32 */
    int64_t m, n, k, batches;
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc, step_a, step_b, step_c;
};

/* op(A) X = B or, with A on the right, X op(A) = B for each of `batches`: all by columns, A
 * triangular, X in the place of B, which is [m,n]. */
struct cuda_trsm {
    enum cuda_type type; /* float32 or float64 */
    bool right, upper, transpose;
    int64_t m, n, batches;
    const void *a;
    void *b;
    int64_t lda, ldb, step_a, step_b;
};

/* The functions that are called of the library. Functions that return an int return a
 * cublasStatus_t. */
struct cuda_blas {
    int (*load)(struct error *err); /* ERR_UNAVAILABLE says what is missing */
    size_t workspace_bytes;
    int (*handle_new)(void **handle);
    void (*handle_free)(void *handle);
    /* Sets stream and memory for what follows; nothing else in the stream uses the memory. */
    int (*use)(void *handle, struct CUstream_st *stream, void *workspace, size_t bytes);
    int (*gemm)(void *handle, const struct cuda_gemm *gemm);
    int (*trsm)(void *handle, const struct cuda_trsm *trsm);
    const char *(*error_text)(int status);
};

extern const struct cuda_blas cuda_blas_real;

/* Opens the library before the first product, from a prepare. */
int cuda_blas_open(struct cuda_device *d, struct error *err);
void cuda_blas_close(struct cuda_device *d);

/* KERNEL_ENQUEUED, or an error. Thread-safe. */
int cuda_blas_gemm(struct kernel_call *call, const struct cuda_gemm *gemm);
int cuda_blas_trsm(struct kernel_call *call, const struct cuda_trsm *trsm);

#endif
