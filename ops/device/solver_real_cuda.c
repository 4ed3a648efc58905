/* SPDX-License-Identifier: Apache-2.0
 *
 * cuSOLVER, of the version that this was built with. Its bits are the same in each run: that is a
 * handle's default mode. Matrices of a batch are factored one after the other.
 */
#include "ops/device/solver_cuda.h"

#include "ops/device/library_real_cuda.h"

#if __has_include(<cusolverDn.h>)
#include <cusolverDn.h>

#define FUNCTIONS(X)                                                                               \
    X(create, cusolverDnCreate)                                                                    \
    X(destroy, cusolverDnDestroy)                                                                  \
    X(set_stream, cusolverDnSetStream)                                                             \
    X(lu_size_float, cusolverDnSgetrf_bufferSize)                                                  \
    X(lu_size_double, cusolverDnDgetrf_bufferSize)                                                 \
    X(lu_float, cusolverDnSgetrf)                                                                  \
    X(lu_double, cusolverDnDgetrf)                                                                 \
    X(solve_float, cusolverDnSgetrs)                                                               \
    X(solve_double, cusolverDnDgetrs)                                                              \
    X(cholesky_size_float, cusolverDnSpotrf_bufferSize)                                            \
    X(cholesky_size_double, cusolverDnDpotrf_bufferSize)                                           \
    X(cholesky_float, cusolverDnSpotrf)                                                            \
    X(cholesky_double, cusolverDnDpotrf)

CUDA_LIBRARY(solver, FUNCTIONS, "factors of matrices",
             CUDA_LIBRARY_FILE("cusolver", CUSOLVER_VER_MAJOR))

CUDA_LIBRARY_HANDLES(solver, cusolverDnHandle_t)

static int bind_stream(void *handle, struct CUstream_st *stream, void *no_workspace)
{
    (void)no_workspace;
    return (int)solver.set_stream(handle, stream);
}

static int workspace(void *handle, const struct cuda_factors *f, int *elements)
{
    bool is_double = f->type == CUDA_FLOAT64;
    if (f->kind == CUDA_LU)
        return (int)(is_double ? solver.lu_size_double(handle, f->n, f->n, NULL, f->n, elements)
                               : solver.lu_size_float(handle, f->n, f->n, NULL, f->n, elements));
    cublasFillMode_t upper = CUBLAS_FILL_MODE_UPPER;
    return (int)(is_double ? solver.cholesky_size_double(handle, upper, f->n, NULL, f->n, elements)
                           : solver.cholesky_size_float(handle, upper, f->n, NULL, f->n, elements));
}

#define FACTOR(type)                                                                               \
    static cusolverStatus_t factor_##type(void *handle, const struct cuda_factors *f, int64_t i)   \
    {                                                                                              \
        type *a = (type *)f->a + i * f->n * f->n;                                                  \
        if (f->kind == CUDA_LU)                                                                    \
            return solver.lu_##type(handle, f->n, f->n, a, f->n, f->workspace,                     \
                                    f->pivots + i * f->n, f->infos + i);                           \
        return solver.cholesky_##type(handle, CUBLAS_FILL_MODE_UPPER, f->n, a, f->n, f->workspace, \
                                      f->workspace_elements, f->infos + i);                        \
    }

FACTOR(float)
FACTOR(double)

static int factor(void *handle, const struct cuda_factors *f)
{
    cusolverStatus_t status = CUSOLVER_STATUS_SUCCESS;
    for (int64_t i = 0; i < f->matrices && !status; i++)
        status = f->type == CUDA_FLOAT64 ? factor_double(handle, f, i) : factor_float(handle, f, i);
    return (int)status;
}

static int solve(void *handle, const struct cuda_lu_solution *s)
{
    cublasOperation_t op = s->transpose ? CUBLAS_OP_T : CUBLAS_OP_N;
    int64_t size = (int64_t)s->n * s->n, step = (int64_t)s->n * s->columns;
    cusolverStatus_t status = CUSOLVER_STATUS_SUCCESS;
    for (int64_t i = 0; i < s->matrices && !status; i++) {
        const int32_t *pivots = s->pivots + i * s->n;
        status = s->type == CUDA_FLOAT64
                     ? solver.solve_double(handle, op, s->n, s->columns,
                                           (const double *)s->factors + i * size, s->n, pivots,
                                           (double *)s->b + i * step, s->n, s->info)
                     : solver.solve_float(handle, op, s->n, s->columns,
                                          (const float *)s->factors + i * size, s->n, pivots,
                                          (float *)s->b + i * step, s->n, s->info);
    }
    return (int)status;
}

/* The library has no error texts. */
static const char *error_text(int status)
{
    switch (status) {
    case CUSOLVER_STATUS_NOT_INITIALIZED:
        return "it is not initialized";
    case CUSOLVER_STATUS_ALLOC_FAILED:
        return "there is no memory";
    case CUSOLVER_STATUS_INVALID_VALUE:
        return "an argument is invalid";
    case CUSOLVER_STATUS_ARCH_MISMATCH:
        return "it has no code for this device";
    case CUSOLVER_STATUS_EXECUTION_FAILED:
        return "its work has failed";
    default:
        return "it has failed";
    }
}

const struct cuda_solver cuda_solver_real = {
    .calls = {"cuSOLVER", load, error_text, handle_new, handle_free, bind_stream, 0},
    .workspace = workspace,
    .factor = factor,
    .solve = solve};
#else
CUDA_LIBRARY_ABSENT(cuda_solver, "factors of matrices", "cusolverDn.h");
#endif
