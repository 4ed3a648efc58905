/* SPDX-License-Identifier: Apache-2.0
 *
 * Factorizations of matrices, and solutions by them, by cuSOLVER. The library is found by name at
 * the first request. This is included only by files whose names end in _cuda.c, and by the tests'
 * own module, which implements the same calls with loops.
 */
#ifndef TF_OPS_DEVICE_SOLVER_CUDA_H
#define TF_OPS_DEVICE_SOLVER_CUDA_H

#include "exec/device/kernel.h"
#include "ops/device/launch_cuda.h"
#include "ops/device/library_cuda.h"

struct cuda_device;

enum cuda_factors_kind {
    CUDA_LU,       /* with row exchanges: P A = L U; L has a unit diagonal */
    CUDA_CHOLESKY, /* A = U^T U; only the upper triangle of A is read, and becomes U */
};

/* `matrices` column-major matrices [n,n], one after the other; the factors replace them. infos: for
 * each, 0 or, counted from 1, the first zero pivot (LU), or the order of the first leading minor
 * that is not positive (Cholesky). */
struct cuda_factors {
    enum cuda_factors_kind kind;
    enum cuda_type type; /* float32 or float64 */
    int n;
    int64_t matrices;
    void *a;
    int32_t *pivots; /* n per matrix: row i was exchanged with row pivots[i], from 1 */
    int32_t *infos;
    void *workspace;
    int workspace_elements; /* as cuda_solver_workspace requires */
};

/* Solves op(A) X = B with the factors of A: `matrices` column-major matrices [n,columns], one after
 * the other, which X replaces. */
struct cuda_lu_solution {
    enum cuda_type type;
    bool transpose;
    int n, columns;
    int64_t matrices;
    const void *factors;
    const int32_t *pivots;
    void *b;
    int32_t *info; /* one word, which does not depend on the data */
};

/* The library functions that are called. Functions that return an int return a cusolverStatus_t. */
struct cuda_solver {
    struct cuda_library_calls calls;
    int (*workspace)(void *handle, const struct cuda_factors *factors, int *elements);
    int (*factor)(void *handle, const struct cuda_factors *factors);
    int (*solve)(void *handle, const struct cuda_lu_solution *solution);
};

extern const struct cuda_solver cuda_solver_real;

/* Opens the library; prepare calls it before the first call. */
int cuda_solver_open(struct cuda_device *d, struct error *err);

/* Returns the workspace, in elements, that factors of that kind, type and n need. */
int cuda_solver_workspace(struct cuda_device *d, const struct cuda_factors *factors, int *elements,
                          struct error *err);

/* Return KERNEL_ENQUEUED, or an error. Thread-safe. */
int cuda_solver_factor(struct kernel_call *call, const struct cuda_factors *factors);
int cuda_solver_solve(struct kernel_call *call, const struct cuda_lu_solution *solution);

#endif
