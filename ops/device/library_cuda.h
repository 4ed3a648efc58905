/* SPDX-License-Identifier: Apache-2.0
 *
 * Libraries of a GPU, which are found by name at the first request. Those that are optional have an
 * environment variable, such as TF_CUDNN: 0 disables the library, and 1 makes it an error if it is
 * missing. This is included only by files whose names end in _cuda.c, and by the tests' own module.
 */
#ifndef TF_OPS_DEVICE_LIBRARY_CUDA_H
#define TF_OPS_DEVICE_LIBRARY_CUDA_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct CUstream_st;
struct cuda_device;
struct kernel_call;

/* What each library's functions begin with; a library may lack those of handles. Functions that
 * return an int return a status of the library. */
struct cuda_library_calls {
    const char *name;
    int (*load)(struct error *err); /* ERR_UNAVAILABLE says what is missing */
    const char *(*error_text)(int status);
    int (*handle_new)(void **handle);
    void (*handle_free)(void *handle);
    /* Sets stream and workspace for the following calls; only they may use the workspace. */
    int (*use)(void *handle, struct CUstream_st *stream, void *workspace);
    size_t workspace_bytes; /* 0: callers bring what they need */
};

/* A library that is opened once for a device. Its permanent workspace belongs to the device's
 * stream for kernels, in which its work is done one after the other, and may be captured. */
struct cuda_handle {
    const struct cuda_library_calls *calls;
    pthread_mutex_t lock; /* guards what follows, and calls with the handle */
    bool is_open;         /* by a first request */
    void *handle;         /* NULL: not opened, or no such library */
    struct buffer *workspace;
};

/* Returns '0', '1', or 0 if the variable is not set. */
char cuda_wish(const char *variable);

/* Loads the library unless the variable (NULL: there is none) disables it. An error: it is needed,
 * but missing. */
int cuda_load(const struct cuda_device *d, const char *variable,
              const struct cuda_library_calls *calls, bool *is_there, struct error *err);

/* Returns 0, or the error for a status of the library. */
int cuda_library_check(const struct cuda_device *d, const struct cuda_library_calls *calls,
                       int status, const char *what, struct error *err);

/* Loads and opens the library; prepare calls it before the first use. An optional library, which
 * has a variable, also has choices, which are opened. Thread-safe. */
int cuda_handle_open(struct cuda_device *d, struct cuda_handle *h,
                     const struct cuda_library_calls *calls, const char *variable,
                     struct error *err);
void cuda_handle_close(struct cuda_handle *h);

/* Makes the library's next calls go to the compute queue; the lock must be held. */
int cuda_handle_use(struct cuda_device *d, struct cuda_handle *h, struct error *err);

/* Begins a kernel's calls with the handle, for which the lock is held, and ends them with their
 * status: then it returns KERNEL_ENQUEUED, or an error. */
int cuda_handle_begin(struct kernel_call *call, struct cuda_handle *h);
int cuda_handle_end(struct kernel_call *call, struct cuda_handle *h, int status, const char *what);

#endif
