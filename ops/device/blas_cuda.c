/* SPDX-License-Identifier: Apache-2.0
 *
 * A device has one cuBLAS handle with a permanent workspace, so that products may be captured: the
 * workspace belongs to the device's stream for kernels, in which products run one after the other.
 */
#include "ops/device/blas_cuda.h"

#include "ops/device/cuda.h"

static int check(const struct cuda_device *d, int status, const char *what, struct error *err)
{
    if (!status)
        return 0;
    return error_set(err, ERR_OS, "%s:%d: cuBLAS: %s: %s (status %d)", d->device.type,
                     d->device.index, what, d->blas->error_text(status), status);
}

static int open_handle(struct cuda_device *d, struct error *err)
{
    struct error missing = ERROR_INIT;
    if (d->blas->load(&missing))
        return error_set(err, missing.code, "%s:%d: %s", d->device.type, d->device.index,
                         missing.text);
    if (cuda_enter(d, err))
        return err->code;
    struct buffer *workspace = d->device.memory->alloc(&d->device, d->blas->workspace_bytes);
    if (!workspace)
        return error_set(err, ERR_OS, "%s:%d: no memory for the work of cuBLAS, %zu bytes",
                         d->device.type, d->device.index, d->blas->workspace_bytes);
    if (check(d, d->blas->handle_new(&d->blas_handle), "it is opened", err)) {
        workspace->free(workspace);
        return err->code;
    }
    d->blas_workspace = workspace;
    return 0;
}

int cuda_blas_open(struct cuda_device *d, struct error *err)
{
    pthread_mutex_lock(&d->blas_lock);
    int code = d->blas_handle ? 0 : open_handle(d, err);
    pthread_mutex_unlock(&d->blas_lock);
    return code;
}

void cuda_blas_close(struct cuda_device *d)
{
    if (!d->blas_handle)
        return;
    d->blas->handle_free(d->blas_handle);
    d->blas_workspace->free(d->blas_workspace);
}

/* Returns with the lock held, which the caller releases. */
static int begin(struct kernel_call *call, struct cuda_device *d)
{
    struct CUstream_st *stream = (struct CUstream_st *)cuda_stream(d, QUEUE_COMPUTE);
    pthread_mutex_lock(&d->blas_lock);
    if (cuda_enter(d, call->err))
        return call->err->code;
    int status =
        d->blas->use(d->blas_handle, stream, d->blas_workspace->data, d->blas->workspace_bytes);
    return check(d, status, "a stream is set", call->err);
}

int cuda_blas_gemm(struct kernel_call *call, const struct cuda_gemm *gemm)
{
    struct cuda_device *d = cuda_device(call->device);
    struct cuda_gemm product = *gemm;
    product.tf32 = d->tf32 && gemm->type == CUDA_FLOAT32;
    int code = begin(call, d);
    if (!code)
        code = check(d, d->blas->gemm(d->blas_handle, &product), "a product", call->err);
    pthread_mutex_unlock(&d->blas_lock);
    return code ? code : KERNEL_ENQUEUED;
}

int cuda_blas_trsm(struct kernel_call *call, const struct cuda_trsm *trsm)
{
    struct cuda_device *d = cuda_device(call->device);
    int code = begin(call, d);
    if (!code)
        code = check(d, d->blas->trsm(d->blas_handle, trsm), "triangular equations", call->err);
    pthread_mutex_unlock(&d->blas_lock);
    return code ? code : KERNEL_ENQUEUED;
}
