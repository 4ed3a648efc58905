/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of the CUDA device. This is included only by files whose names end in
 * _cuda.c, and by the tests' own module, which has the same device over another driver.
 *
 * Each of the device's queues is a stream. A thread that captures uses streams of its own as queues
 * (graph_cuda.c), as other threads go on using the device's.
 */
#ifndef TF_OPS_DEVICE_CUDA_H
#define TF_OPS_DEVICE_CUDA_H

#include <pthread.h>

#include "base/atomic.h"
#include "exec/device/device.h"
#include "ops/device/choices_cuda.h"
#include "ops/device/driver_cuda.h"
#include "ops/device/library_cuda.h"

/* A moment on the clocks of both host and device; lives as long as any event that refers to it. */
struct cuda_anchor {
    atomic_int holders;
    struct cuda_event *event;
    int64_t time; /* when `event` was over: CLOCK_MONOTONIC, in ns */
};

struct device_event {
    struct cuda_event *event; /* NULL: the device had failed */
    enum queue_kind queue;
    bool timed;
    struct cuda_anchor *anchor;  /* of a timed event */
    struct event_waiter *waiter; /* to be told when it is over */
    struct device_event *next;   /* in the list of watched, or idle, events */
};

/* A thread that waits for a queue's events, one after the other. */
struct cuda_watcher {
    struct cuda_device *device;
    pthread_t thread;
    pthread_cond_t changed;
    struct device_event *first, *last; /* to wait for; it waits for the first */
    bool runs, closing;
};

enum { CUDA_BLAS, CUDA_LT, CUDA_SOLVER, CUDA_DNN, CUDA_HANDLES };

struct cuda_device {
    struct device device; /* first */
    const struct cuda_driver *driver;
    char choice[64];
    struct cuda_stream *streams[N_QUEUES], *clock;
    size_t limit;                /* bytes of device memory that may be used */
    bool tf32, fast;             /* as in struct device_options */
    struct cuda_choices choices; /* of algorithms */
    atomic_size_t used;
    atomic_bool has_failed;
    pthread_mutex_t lock; /* guards what follows */
    struct error failure;
    struct device_event *idle[2]; /* reusable events: not timed, timed */
    struct cuda_watcher watchers[N_QUEUES];
    pthread_mutex_t peer_lock;  /* guards what follows */
    uint64_t peers;             /* devices with access enabled, a bit for each */
    pthread_mutex_t clock_lock; /* guards what follows */
    struct cuda_anchor *anchor;
    /* Libraries; set by the opener of the device: blas_cuda.h and so on. */
    const struct cuda_blas *blas;
    const struct cuda_lt *lt;
    const struct cuda_solver *solver;
    const struct cuda_dnn *dnn;
    const struct cuda_nccl *nccl;
    struct cuda_handle handles[CUDA_HANDLES];
    VEC(struct known_gemm) gemms; /* gemm_cuda.c; guarded by the lock of its handle */
};

static inline struct cuda_device *cuda_device(const struct device *device)
{
    return device->context;
}

/* ---- check_cuda.c ---- */

/* Sets the thread's device, before any call of the driver. Fails if the device has failed. */
int cuda_enter(struct cuda_device *d, struct error *err);

/* Returns 0, or the error of `what`: then the device has failed for good. */
int cuda_check(struct cuda_device *d, int result, const char *what, struct error *err);

/* Returns whether the device has failed; `err` (NULL: not wanted) says why. */
bool cuda_has_failed(struct cuda_device *d, struct error *err);

/* ---- device_cuda.c ---- */

/* Opens the driver's device of that index. ERR_UNAVAILABLE: there is no such device, or no driver
 * for it. The caller sets the parts that compute (kernels, code, leave_fault). */
struct device *cuda_open(const struct cuda_driver *driver, int index,
                         const struct device_options *options, struct error *err);

/* ---- queue_cuda.c ---- */

extern const struct device_queue cuda_queue;
int cuda_queues_open(struct cuda_device *d, struct error *err);
/* Call it when all waiters have been told. */
void cuda_queues_close(struct cuda_device *d);

/* ---- memory_cuda.c ---- */

extern const struct device_memory cuda_memory;

/* ---- peer_cuda.c ---- */

extern const struct device_peer cuda_peer;

/* ---- graph_cuda.c ---- */

extern const struct device_capture cuda_capture;

/* Returns the stream that is the calling thread's queue. */
struct cuda_stream *cuda_stream(struct cuda_device *d, enum queue_kind queue);

/* Like cuda_check, except that while the thread captures, only the capture fails, not the
 * device. */
int cuda_check_enqueued(struct cuda_device *d, int result, const char *what, struct error *err);

#endif
