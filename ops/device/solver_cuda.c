/* SPDX-License-Identifier: Apache-2.0
 *
 * A device has one cuSOLVER handle; callers bring all workspace of their calls.
 */
#include "ops/device/solver_cuda.h"

#include "ops/device/cuda.h"

static int check(const struct cuda_device *d, int status, const char *what, struct error *err)
{
    if (!status)
        return 0;
    return error_set(err, ERR_OS, "%s:%d: cuSOLVER: %s: %s (status %d)", d->device.type,
                     d->device.index, what, d->solver->error_text(status), status);
}

int cuda_solver_open(struct cuda_device *d, struct error *err)
{
    struct error missing = ERROR_INIT;
    void *handle = NULL;
    int code = 0;
    pthread_mutex_lock(&d->solver_lock);
    if (!d->solver_handle && d->solver->load(&missing))
        code = error_set(err, missing.code, "%s:%d: %s", d->device.type, d->device.index,
                         missing.text);
    else if (!d->solver_handle && !(code = cuda_enter(d, err)) &&
             !(code = check(d, d->solver->handle_new(&handle), "it is opened", err)))
        d->solver_handle = handle;
    pthread_mutex_unlock(&d->solver_lock);
    return code;
}

void cuda_solver_close(struct cuda_device *d)
{
    if (d->solver_handle)
        d->solver->handle_free(d->solver_handle);
}

int cuda_solver_workspace(struct cuda_device *d, const struct cuda_factors *factors, int *elements,
                          struct error *err)
{
    if (cuda_enter(d, err))
        return err->code;
    pthread_mutex_lock(&d->solver_lock);
    int status = d->solver->workspace(d->solver_handle, factors, elements);
    pthread_mutex_unlock(&d->solver_lock);
    return check(d, status, "its memory is asked for", err);
}

/* Returns with the lock held, which the caller releases. */
static int begin(struct kernel_call *call, struct cuda_device *d)
{
    struct CUstream_st *stream = (struct CUstream_st *)cuda_stream(d, QUEUE_COMPUTE);
    pthread_mutex_lock(&d->solver_lock);
    if (cuda_enter(d, call->err))
        return call->err->code;
    return check(d, d->solver->use(d->solver_handle, stream), "a stream is set", call->err);
}

int cuda_solver_factor(struct kernel_call *call, const struct cuda_factors *factors)
{
    struct cuda_device *d = cuda_device(call->device);
    int code = begin(call, d);
    if (!code)
        code = check(d, d->solver->factor(d->solver_handle, factors), "factors", call->err);
    pthread_mutex_unlock(&d->solver_lock);
    return code ? code : KERNEL_ENQUEUED;
}

int cuda_solver_solve(struct kernel_call *call, const struct cuda_lu_solution *solution)
{
    struct cuda_device *d = cuda_device(call->device);
    int code = begin(call, d);
    if (!code)
        code = check(d, d->solver->solve(d->solver_handle, solution), "a solution", call->err);
    pthread_mutex_unlock(&d->solver_lock);
    return code ? code : KERNEL_ENQUEUED;
}
