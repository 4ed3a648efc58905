/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices: memory, copies, ordering and kernels' code, behind plain C. The executor knows only this
 * of a device. Each type of device is a module that is loaded on demand.
 *
 * A device whose memory is not the host's (is_host false) works asynchronously. Work is enqueued:
 * kernels that return ENQUEUED in one queue, copies from the host and to it in others. Work of one
 * queue runs in order; the device, not the host, waits for an event of another queue. Nothing else
 * is ordered: executors order it with the functions of exec/device/queue.h.
 *
 * Memory of a device belongs to its compute queue: it may be freed while work of that queue still
 * uses it, as its next user enqueues behind that work, and memory that goes back to the system is
 * freed behind it. Before another queue first uses it, that queue must wait for the compute queue;
 * before it is freed, the compute queue must wait for that one.
 */
#ifndef TF_EXEC_DEVICE_H
#define TF_EXEC_DEVICE_H

#include "exec/device/kernel.h"
#include "exec/device/step_block.h"

#define DEVICE_ABI 16

struct device_options {
    int threads; /* size of the compute team; 0: as many as cores */
    bool deterministic;
    size_t memory; /* bytes of the device's memory that may be used; 0: all */
    bool tf32;     /* products of float32 may round their operands to 11 bits, where that is faster:
                    * NVIDIA's TensorFloat-32 */
    bool fast;     /* bits may differ from run to run, where that is faster: a GPU's convolutions */
    bool exact;    /* an element is computed from nothing but what it depends on: no Winograd and no
                    * FFT, whose tiles mix their elements */
};

enum queue_kind {
    QUEUE_COMPUTE, /* kernels, and copies within the device */
    QUEUE_IN,      /* copies from the host */
    QUEUE_OUT,     /* copies to the host */
    N_QUEUES
};

struct device_graph; /* captured work, of the device's own type */
struct communicator_functions;
struct device_event; /* all work that a queue had at some time, of the device's own type */

/* A waiter for the end of an event, kept until `done` is called, once, by a thread of the device:
 * with the reason if the device has failed, after which nothing works any more. */
struct event_waiter {
    void (*done)(struct event_waiter *waiter, const struct error *failure);
    struct event_waiter *next; /* for the device */
};

struct device_memory {
    /* Held once; NULL without memory. Freed through the buffer. */
    struct buffer *(*alloc)(struct device *device, size_t bytes);
    /* Host memory that copies fast to and from the device; NULL: any does. As alloc. */
    struct buffer *(*alloc_host)(struct device *device, size_t bytes);

    /* Makes host memory that others have allocated, in which links leave received data, such memory
     * until `unpin`; NULL: the device has none such. Pinned memory may share pages with other
     * memory, pinned or not. An error costs only speed. From any thread, one at a time; takes no
     * locks of ours. */
    int (*pin)(struct device *device, const void *data, size_t bytes, struct error *err);
    void (*unpin)(struct device *device, const void *data);

    /* Enqueues a copy from the host, to the host, or within the device: the queue's. Host memory
     * must stay until it is over. On a device whose memory is the host's it is over when it
     * returns, whatever the queue. ERR_OS, ERR_INTERNAL: the device has failed. */
    int (*copy)(struct device *device, enum queue_kind queue, void *to, const void *from,
                size_t bytes, struct error *err);
};

/* Copies from the memory of one device to that of another of the type. */
struct device_peer {
    /* Returns whether `from` copies to `to` without the host; any device of the type knows. */
    bool (*reaches)(struct device *device, int from, int to);
    /* Copies to the memory of `other`, enqueued in QUEUE_OUT of `device`, which must reach that
     * memory. Each device can wait for the other's events as for its own. */
    int (*copy_to)(struct device *device, void *to, struct device *other, const void *from,
                   size_t bytes, struct error *err);
};

/* Events, from any thread. */
struct device_queue {
    /* Records the end of all work that the queue has. Unless the event is given to `notify`, its
     * owner calls `event_free` once it is no longer used. */
    struct device_event *(*record)(struct device *device, enum queue_kind queue, bool timed);
    void (*event_free)(struct device *device, struct device_event *event);
    /* The end of a timed event that is over, in nanoseconds of CLOCK_MONOTONIC, as near as the
     * device's clock can tell. */
    int64_t (*time)(struct device *device, struct device_event *event);
    /* Later work of the queue begins after the event. */
    void (*wait)(struct device *device, enum queue_kind queue, struct device_event *event);
    /* Has the waiter told of the event's end, and frees the event. The waiter may end the device's
     * last use, so the caller must not touch the device afterwards. */
    void (*notify)(struct device *device, struct device_event *event, struct event_waiter *waiter);
    /* Waits for the event, and reports a failed device; only at the end of a step. */
    int (*block)(struct device *device, struct device_event *event, struct error *err);
};

/* Repeated work. */
struct device_capture {
    /* Captures the work that `enqueue` enqueues from this thread, instead of doing it: in
     * QUEUE_COMPUTE, and in queues that wait there for an event of that one, for which it must wait
     * in the end. Addresses are fixed; host memory is read at each launch. Meanwhile the thread may
     * not allocate, wait, or ask for notifications. After an error, which may be `enqueue`'s,
     * nothing is enqueued. */
    int (*capture)(struct device *device, int (*enqueue)(void *context), void *context,
                   struct device_graph **graph, struct error *err);
    /* Enqueues it all as one piece of work in QUEUE_COMPUTE; it may run only once at a time. */
    int (*launch)(struct device *device, struct device_graph *graph, struct error *err);
    /* Called when its work is over. */
    void (*free)(struct device *device, struct device_graph *graph);
};

struct device_layout {
    size_t (*bytes)(const struct layout *layout); /* of a tensor with that layout */
    /* Converts input 0 (in_layouts[0], NULL: row-major) to out[0].layout, which the caller sets
     * before prepare (NULL: row-major); prepared with setup->node NULL. */
    const struct kernel_code *relayout;
};

struct device {
    const char *type;     /* "CPU" */
    int index;            /* 0 of CPU:0 */
    bool is_host;         /* memory is the host's: copies are not needed */
    int64_t memory_bytes; /* that it has, and that may be used; 0: the host's, or unknown */
    int threads;
    bool deterministic, exact;
    void *context;      /* for the device */
    void *module;       /* from dlopen */
    const char *choice; /* options chosen for this machine, shown in plans: "isa=v4
                         * blas=SkylakeX" */

    /* Kernels that the module provides; NULL: those that every tool knows. */
    const struct kernel_table *kernels;
    /* Code of a kernel row by its name; NULL: not in this module. */
    const struct kernel_code *(*code)(struct device *device, const char *name);

    /* The device's abilities; each but `memory` may be NULL. */
    const struct device_memory *memory;
    const struct device_queue *queue; /* NULL if the memory is the host's */
    const struct device_capture *capture;
    const struct device_peer *peer;
    const struct device_layout *layout;
    const struct communicator_functions *communicators; /* exec/device/communicator.h */

    /* Sets the error of a fault of the device's own (code FAULT_OWN or above); returns its code.
     * NULL: its kernels leave none. */
    int (*explain)(struct device *device, const struct fault *fault, struct error *err);

    /* Enqueued in QUEUE_COMPUTE: leaves the fault, which is in the device's memory, in the block as
     * a kernel would, unless it is none or the block has one. */
    int (*leave_fault)(struct device *device, struct step_block *block, const struct fault *fault,
                       struct error *err);

    /* Called by a thread before its first kernel, with the size of the team it may use. */
    void (*enter_thread)(struct device *device, int threads);

    void (*free)(struct device *device);
};

/* The table that a module exports as "device_entry". */
struct device_entry {
    int abi; /* DEVICE_ABI */
    struct device *(*open)(int index, const struct device_options *options, struct error *err);
};

/* Opens "CPU", 0: loads the best module for the machine, unless TF_CPU_ISA=base|v3|v4 names one.
 * For any other type the module is TYPE.so in lower case, in one of the folders of TF_DEVICE_PATH
 * (separated by colons) or in the folder of the library: "CUDA" is cuda.so. ERR_UNAVAILABLE if
 * there is no such module or device, or no driver for it; ERR_CONFIG if the module is unusable. */
struct device *device_open(const char *type, int index, const struct device_options *options,
                           struct error *err);
void device_free(struct device *device);

/* Memory of the device, held once. NULL without memory, even after pools (exec/device/pool.h) have
 * freed what nobody uses. */
struct buffer *device_alloc(struct device *device, size_t bytes);

/* Host memory for use with the device, held once; NULL without memory. */
struct buffer *device_alloc_host(struct device *device, size_t bytes);

#endif
