/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/device/library_cuda.h"

#include <stdlib.h>

#include "exec/device/kernel.h"
#include "ops/device/cuda.h"

char cuda_wish(const char *variable)
{
    const char *text = getenv(variable);
    return text ? *text : 0;
}

int cuda_load(const struct cuda_device *d, const char *variable,
              const struct cuda_library_calls *calls, bool *is_there, struct error *err)
{
    struct error missing = ERROR_INIT;
    char wish = variable ? cuda_wish(variable) : '1';
    *is_there = wish != '0' && !calls->load(&missing);
    if (*is_there || wish != '1')
        return 0;
    return error_set(err, missing.code, "%s:%d: %s", d->device.type, d->device.index, missing.text);
}

int cuda_library_check(const struct cuda_device *d, const struct cuda_library_calls *calls,
                       int status, const char *what, struct error *err)
{
    if (!status)
        return 0;
    return error_set(err, ERR_OS, "%s:%d: %s: %s: %s (status %d)", d->device.type, d->device.index,
                     calls->name, what, calls->error_text(status), status);
}

static int open_handle(struct cuda_device *d, struct cuda_handle *h, const char *variable,
                       struct error *err)
{
    const struct cuda_library_calls *calls = h->calls;
    size_t bytes = calls->workspace_bytes;
    bool is_there;
    if (cuda_load(d, variable, calls, &is_there, err) || !is_there)
        return err->code;
    if (cuda_enter(d, err) || (variable && cuda_choices_open(&d->choices, err)))
        return err->code;
    struct buffer *workspace = bytes ? d->device.memory->alloc(&d->device, bytes) : NULL;
    if (bytes && !workspace)
        return error_set(err, ERR_OS, "%s:%d: no memory for the work of %s, %zu bytes",
                         d->device.type, d->device.index, calls->name, bytes);
    if (cuda_library_check(d, calls, calls->handle_new(&h->handle), "it is opened", err)) {
        if (workspace)
            workspace->free(workspace);
        h->handle = NULL;
        return err->code;
    }
    h->workspace = workspace;
    return 0;
}

int cuda_handle_open(struct cuda_device *d, struct cuda_handle *h,
                     const struct cuda_library_calls *calls, const char *variable,
                     struct error *err)
{
    pthread_mutex_lock(&h->lock);
    h->calls = calls;
    int code = h->is_open ? 0 : open_handle(d, h, variable, err);
    h->is_open = !code;
    pthread_mutex_unlock(&h->lock);
    return code;
}

void cuda_handle_close(struct cuda_handle *h)
{
    if (h->handle)
        h->calls->handle_free(h->handle);
    if (h->workspace)
        h->workspace->free(h->workspace);
    pthread_mutex_destroy(&h->lock);
}

int cuda_handle_use(struct cuda_device *d, struct cuda_handle *h, struct error *err)
{
    struct CUstream_st *stream = (struct CUstream_st *)cuda_stream(d, QUEUE_COMPUTE);
    void *workspace = h->workspace ? h->workspace->data : NULL;
    if (cuda_enter(d, err))
        return err->code;
    return cuda_library_check(d, h->calls, h->calls->use(h->handle, stream, workspace),
                              "a stream is set", err);
}

int cuda_handle_begin(struct kernel_call *call, struct cuda_handle *h)
{
    pthread_mutex_lock(&h->lock);
    int code = cuda_handle_use(cuda_device(call->device), h, call->err);
    if (code)
        pthread_mutex_unlock(&h->lock);
    return code;
}

int cuda_handle_end(struct kernel_call *call, struct cuda_handle *h, int status, const char *what)
{
    struct cuda_device *d = cuda_device(call->device);
    int code = cuda_library_check(d, h->calls, status, what, call->err);
    pthread_mutex_unlock(&h->lock);
    return code ? code : KERNEL_ENQUEUED;
}
