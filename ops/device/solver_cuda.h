/* SPDX-License-Identifier: Apache-2.0
 *
 * Factors of matrices, and solutions by them, by cuSOLVER, whose library is found by its name when
 * it is first asked for. Only files whose names end in _cuda.c include this, and the tests' own
 * module, which answers the same calls with loops.
 */
#ifndef TF_OPS_DEVICE_SOLVER_CUDA_H
#define TF_OPS_DEVICE_SOLVER_CUDA_H

#include "exec/device/kernel.h"
#include "ops/device/launch_cuda.h"

struct cuda_device;

enum cuda_factors_kind {
    CUDA_LU,       /* by rows exchanged: P A = L U; L has ones on its diagonal */
    CUDA_CHOLESKY, /* A = U^T U; only the upper triangle of A is read, and becomes U */
};

/* `matrices` of [n,n] by columns, one behind the other, each of which its factors take the place
 * of. infos: of each 0 or, counted from 1, the first pivot that is zero, the order of the first
 * leading minor that is not positive. */
struct cuda_factors {
    enum cuda_factors_kind kind;
    enum cuda_type type; /* float32 or float64 */
    int n;
    int64_t matrices;
    void *a;
    int32_t *pivots; /* n of each: row i was exchanged with row pivots[i], counted from 1 */
    int32_t *infos;
    void *workspace;
    int workspace_elements; /* that cuda_solver_workspace has asked for */
};

/* op(A) X = B with the factors of A: `matrices` of [n,columns] by columns, one behind the other,
 * each of which X takes the place of. */
struct cuda_lu_solution {
    enum cuda_type type;
    bool transpose;
    int n, columns;
    int64_t matrices;
    const void *factors;
    const int32_t *pivots;
    void *b;
    int32_t *info; /* one word, which says nothing of the data */
};

/* The functions that are called of the library. Functions that return an int return a
 * cusolverStatus_t. */
struct cuda_solver {
    int (*load)(struct error *err); /* ERR_UNAVAILABLE says what is missing */
    int (*handle_new)(void **handle);
    void (*handle_free)(void *handle);
    int (*use)(void *handle, struct CUstream_st *stream); /* from now on */
    int (*workspace)(void *handle, const struct cuda_factors *factors, int *elements);
    int (*factor)(void *handle, const struct cuda_factors *factors);
    int (*solve)(void *handle, const struct cuda_lu_solution *solution);
    const char *(*error_text)(int status);
};

extern const struct cuda_solver cuda_solver_real;

/* Opens the library before the first call, from a prepare. */
int cuda_solver_open(struct cuda_device *d, struct error *err);
void cuda_solver_close(struct cuda_device *d);

/* The elements of memory that factors of that kind, type and n need beside themselves. */
int cuda_solver_workspace(struct cuda_device *d, const struct cuda_factors *factors, int *elements,
                          struct error *err);

/* KERNEL_ENQUEUED, or an error. Thread-safe. */
int cuda_solver_factor(struct kernel_call *call, const struct cuda_factors *factors);
int cuda_solver_solve(struct kernel_call *call, const struct cuda_lu_solution *solution);

#endif
