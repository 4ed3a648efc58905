/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products for all types, over oneDNN (float32 on x86-64), OpenBLAS (floats otherwise) and
 * own loops (integers).
 */
#ifndef TF_OPS_DEVICE_BLAS_CPU_H
#define TF_OPS_DEVICE_BLAS_CPU_H

#include "ops/device/cpu.h"

/* Minimum multiplications per thread: with fewer, sharing takes longer than it saves, and much
 * longer on a busy machine, where the other thread may have to wait for a core. */
#define GEMM_GRAIN (1 << 19)

/* C [m, n] = op(A) op(B) + (accumulate ? C : 0), row-major; op(A) is [m, k], op(B) [k, n]. */
struct gemm {
    enum dtype type;
    bool transpose_a, transpose_b, accumulate;
    bool deterministic; /* split by shape, so that bits do not depend on the number of threads */
    int64_t m, n, k;
    int64_t lda, ldb, ldc; /* elements between rows; 0: there are no gaps */
    void *scratch;         /* gemm_scratch_bytes, or NULL, which makes some products slower */
    struct device *device; /* with scratch */
};

size_t gemm_scratch_bytes(const struct gemm *gemm);

/* Returns whether rows computed separately have the same bits as in the whole product. */
bool gemm_has_rows(const struct gemm *gemm);

/* Computes rows [row, row + n) of such a product into `rows`, in the calling thread; false:
 * failure. */
bool gemm_rows(const struct gemm *gemm, const void *a, const void *b, int64_t row, int64_t n,
               void *rows);

/* Multiplies with at most `threads` threads; pass one inside a parallel region. ERR_DATA:
 * dimensions beyond 2^31. */
int gemm_run(const struct gemm *gemm, const void *a, const void *b, void *c, int threads,
             struct error *err);

#endif
