/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products for all types, over oneDNN (float32 on x86-64), OpenBLAS (floats otherwise) and
 * own loops (integers).
 */
#ifndef TF_OPS_DEVICE_BLAS_CPU_H
#define TF_OPS_DEVICE_BLAS_CPU_H

#include "ops/device/cpu.h"

/* Multiplications that occupy a thread: with less than that for each, sharing takes longer than it
 * saves, and on a busy machine, where the other thread may have to wait for a core, far longer. */
#define GEMM_GRAIN (1 << 19)

/* C [m, n] = op(A) op(B) + (accumulate ? C : 0), row-major; op(A) is [m, k], op(B) [k, n]. */
struct gemm {
    enum dtype type;
    bool transpose_a, transpose_b, accumulate;
    bool deterministic; /* cut by shape, so that the bits do not depend on the number of threads */
    int64_t m, n, k;
    void *scratch; /* gemm_scratch_bytes, or NULL: some products are slower without */
};

size_t gemm_scratch_bytes(const struct gemm *gemm);

/* Returns whether some rows of the product have the bits that they have in all of it, however many.
 * */
bool gemm_has_rows(const struct gemm *gemm);

/* Rows [row, row + n) of such a product, to `rows`, by the calling thread; false: the library
 * failed. */
bool gemm_rows(const struct gemm *gemm, const void *a, const void *b, int64_t row, int64_t n,
               void *rows);

/* Multiplies by at most `threads` threads; inside a parallel region, pass one. Dimensions beyond
 * 2^31 are ERR_DATA. */
int gemm_run(const struct gemm *gemm, const void *a, const void *b, void *c, int threads,
             struct error *err);

#endif
