/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLAS, of the version that this was built with. Products of float32 are computed in float32:
 * TF32, which has 10 bits, is not requested.
 */
#include "ops/device/blas_cuda.h"

#include "ops/device/library_real_cuda.h"

#if __has_include(<cublas_v2.h>)
#include <cublas_v2.h>

#define WORKSPACE_BYTES ((size_t)32 << 20) /* recommended by cuBLAS for compute capability 9 */

#define FUNCTIONS(X)                                                                               \
    X(create, cublasCreate_v2)                                                                     \
    X(destroy, cublasDestroy_v2)                                                                   \
    X(set_stream, cublasSetStream_v2)                                                              \
    X(set_workspace, cublasSetWorkspace_v2)                                                        \
    X(gemm, cublasGemmStridedBatchedEx_64)                                                         \
    X(trsm_float, cublasStrsm_v2_64)                                                               \
    X(trsm_double, cublasDtrsm_v2_64)                                                              \
    X(text, cublasGetStatusString)

CUDA_LIBRARY(blas, FUNCTIONS, "matrix products", CUDA_LIBRARY_FILE("cublas", CUBLAS_VER_MAJOR))

CUDA_LIBRARY_HANDLES(blas, cublasHandle_t)

CUDA_LIBRARY_ERRORS(blas, cublasStatus_t)

static int use_stream(void *handle, struct CUstream_st *stream, void *workspace)
{
    cublasStatus_t status = blas.set_stream(handle, stream); /* which resets its workspace */
    return (int)(status ? status : blas.set_workspace(handle, workspace, WORKSPACE_BYTES));
}

static int gemm(void *handle, const struct cuda_gemm *g)
{
    static const cudaDataType types[] = {CUDA_R_32F, CUDA_R_64F, CUDA_R_16F, CUDA_R_16BF};
    bool is_double = g->type == CUDA_FLOAT64;
    cudaDataType type = types[g->type],
                 of_result = g->wide_result && !is_double ? CUDA_R_32F : type;
    const void *alpha = cuda_factor(g->type, true), *beta = cuda_factor(g->type, g->accumulate);
    return (int)blas.gemm(handle, g->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                          g->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, g->m, g->n, g->k, alpha, g->a,
                          type, g->lda, g->step_a, g->b, type, g->ldb, g->step_b, beta, g->c,
                          of_result, g->ldc, g->step_c, g->batches,
                          is_double ? CUBLAS_COMPUTE_64F
                          : g->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                    : CUBLAS_COMPUTE_32F,
                          CUBLAS_GEMM_DEFAULT);
}

static int trsm(void *handle, const struct cuda_trsm *t)
{
    const void *one = cuda_factor(t->type, true);
    cublasSideMode_t side = t->right ? CUBLAS_SIDE_RIGHT : CUBLAS_SIDE_LEFT;
    cublasFillMode_t triangle = t->upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
    cublasOperation_t op = t->transpose ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    for (int64_t i = 0; i < t->batches && !status; i++)
        status = t->type == CUDA_FLOAT64
                     ? blas.trsm_double(handle, side, triangle, op, CUBLAS_DIAG_NON_UNIT, t->m,
                                        t->n, one, (const double *)t->a + i * t->step_a, t->lda,
                                        (double *)t->b + i * t->step_b, t->ldb)
                     : blas.trsm_float(handle, side, triangle, op, CUBLAS_DIAG_NON_UNIT, t->m, t->n,
                                       one, (const float *)t->a + i * t->step_a, t->lda,
                                       (float *)t->b + i * t->step_b, t->ldb);
    return (int)status;
}

const struct cuda_blas cuda_blas_real = {
    .calls = {"cuBLAS", load, error_text, handle_new, handle_free, use_stream, WORKSPACE_BYTES},
    .gemm = gemm,
    .trsm = trsm};
#else
CUDA_LIBRARY_ABSENT(cuda_blas, "matrix products", "cublas_v2.h");
#endif
