/* SPDX-License-Identifier: Apache-2.0
 *
 * Callers bring all workspace of their calls.
 */
#include "ops/device/solver_cuda.h"

#include "ops/device/cuda.h"

int cuda_solver_open(struct cuda_device *d, struct error *err)
{
    return cuda_handle_open(d, &d->handles[CUDA_SOLVER], &d->solver->calls, NULL, err);
}

int cuda_solver_workspace(struct cuda_device *d, const struct cuda_factors *factors, int *elements,
                          struct error *err)
{
    struct cuda_handle *h = &d->handles[CUDA_SOLVER];
    if (cuda_enter(d, err))
        return err->code;
    pthread_mutex_lock(&h->lock);
    int status = d->solver->workspace(h->handle, factors, elements);
    pthread_mutex_unlock(&h->lock);
    return cuda_library_check(d, h->calls, status, "its memory is asked for", err);
}

int cuda_solver_factor(struct kernel_call *call, const struct cuda_factors *factors)
{
    struct cuda_device *d = cuda_device(call->device);
    struct cuda_handle *h = &d->handles[CUDA_SOLVER];
    if (cuda_handle_begin(call, h))
        return call->err->code;
    return cuda_handle_end(call, h, d->solver->factor(h->handle, factors), "factors");
}

int cuda_solver_solve(struct kernel_call *call, const struct cuda_lu_solution *solution)
{
    struct cuda_device *d = cuda_device(call->device);
    struct cuda_handle *h = &d->handles[CUDA_SOLVER];
    if (cuda_handle_begin(call, h))
        return call->err->code;
    return cuda_handle_end(call, h, d->solver->solve(h->handle, solution), "a solution");
}
