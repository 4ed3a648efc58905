/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the CUDA device share. Only files whose names end in _cuda.c include this, and
 * the tests' own module, which has the same device over another driver.
 *
 * Each of the device's queues is a stream; while a thread captures, its queues are streams of its
 * own (graph_cuda.c), as others go on to use the device's.
 */
#ifndef TF_OPS_DEVICE_CUDA_H
#define TF_OPS_DEVICE_CUDA_H

#include <pthread.h>

#include "base/atomic.h"
#include "exec/device/device.h"
#include "ops/device/choices_cuda.h"
#include "ops/device/driver_cuda.h"

/* Reads the clocks of host and device together; lives as long as an event that goes by it. */
struct cuda_anchor {
    atomic_int holders;
    struct cuda_event *event;
    int64_t time; /* when that was over: CLOCK_MONOTONIC, in ns */
};

struct device_event {
    struct cuda_event *event; /* NULL: there is none as the device had failed */
    enum queue_kind queue;
    bool timed;
    struct cuda_anchor *anchor;  /* of a timed one */
    struct event_waiter *waiter; /* who is to be told */
    struct device_event *next;   /* among those that are watched, or idle */
};

/* A thread that sleeps until a queue's events are over, one after the other. */
struct cuda_watcher {
    struct cuda_device *device;
    pthread_t thread;
    pthread_cond_t changed;
    struct device_event *first, *last; /* that are to be waited for; the first is */
    bool runs, closing;
};

struct cuda_device {
    struct device device; /* first */
    const struct cuda_driver *driver;
    char choice[64];
    struct cuda_stream *streams[N_QUEUES], *clock;
    size_t limit;                /* bytes of its memory that may be used */
    bool tf32, fast;             /* as of struct device_options */
    struct cuda_choices choices; /* of algorithms */
    atomic_size_t used;
    atomic_bool has_failed;
    pthread_mutex_t lock; /* guards what follows */
    struct error failure;
    struct device_event *idle[2]; /* to be recorded again; timed ones */
    struct cuda_watcher watchers[N_QUEUES];
    pthread_mutex_t peer_lock;  /* guards what follows */
    uint64_t peers;             /* those that access was enabled to, a bit for each */
    pthread_mutex_t clock_lock; /* guards what follows */
    struct cuda_anchor *anchor;
    const struct cuda_blas *blas; /* blas_cuda.h; set by who opens the device */
    pthread_mutex_t blas_lock;    /* guards what follows */
    void *blas_handle;            /* NULL: nobody has asked for a product */
    struct buffer *blas_workspace;
    const struct cuda_lt *lt;         /* blas_lt_cuda.h; set by who opens the device */
    pthread_mutex_t gemms_lock;       /* guards what follows */
    bool gemms_are_open;              /* somebody has asked for products */
    struct cuda_gemms *gemms;         /* gemm_cuda.c; NULL: nobody has, or there is no cuBLASLt */
    const struct cuda_solver *solver; /* solver_cuda.h; set by who opens the device */
    pthread_mutex_t solver_lock;      /* guards what follows */
    void *solver_handle;              /* NULL: nobody has asked for factors */
    const struct cuda_dnn *dnn;       /* dnn_cuda.h; set by who opens the device */
    pthread_mutex_t dnn_lock;         /* guards what follows */
    bool dnn_is_open;                 /* somebody has asked for convolutions */
    void *dnn_handle;                 /* NULL: nobody has, or there is no such library */
    const struct cuda_nccl *nccl;     /* nccl_cuda.h; set by who opens the device */
};

static inline struct cuda_device *cuda_device(const struct device *device)
{
    return device->context;
}

/* ---- check_cuda.c ---- */

/* Sets the thread's device; whatever calls the driver calls this first. Fails as the device has. */
int cuda_enter(struct cuda_device *d, struct error *err);

/* 0, or what `what` has ended with: then nothing works any more. */
int cuda_check(struct cuda_device *d, int result, const char *what, struct error *err);

/* Returns whether it has failed; `err` (NULL: nobody wants it) says why. */
bool cuda_has_failed(struct cuda_device *d, struct error *err);

/* ---- device_cuda.c ---- */

/* Opens the device of the driver. ERR_UNAVAILABLE: there is no such device, or no driver that knows
 * it. The caller sets the parts that compute (kernels, code, leave_fault). */
struct device *cuda_open(const struct cuda_driver *driver, int index,
                         const struct device_options *options, struct error *err);

/* ---- queue_cuda.c ---- */

extern const struct device_queue cuda_queue;
int cuda_queues_open(struct cuda_device *d, struct error *err);
/* Everybody has been told. */
void cuda_queues_close(struct cuda_device *d);

/* ---- memory_cuda.c ---- */

extern const struct device_memory cuda_memory;

/* ---- peer_cuda.c ---- */

extern const struct device_peer cuda_peer;

/* ---- graph_cuda.c ---- */

extern const struct device_capture cuda_capture;

/* The stream that the queue is to the calling thread. */
struct cuda_stream *cuda_stream(struct cuda_device *d, enum queue_kind queue);

/* Checks like cuda_check, but while the thread captures the capture has failed, and the device has
 * not. */
int cuda_check_enqueued(struct cuda_device *d, int result, const char *what, struct error *err);

#endif
