/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices: memory, copies, ordering and kernels' code, behind plain C. The executor knows no more
 * of a device than this. Each type of device is a module that is loaded when it is asked for.
 *
 * A device whose memory is not the host's (is_host false) works by itself. Its work is enqueued:
 * kernels that return ENQUEUED in one queue, copies from the host and to it in others. Work of one
 * queue is done in its order; what an event of another queue stands for is waited for by the
 * device, not by the host. Nothing else is ordered: executors see to it with the functions of
 * exec/device/queue.h.
 *
 * Memory of a device belongs to its compute queue: it may be given back while work of that queue
 * still uses it, as whoever gets it next enqueues behind that work, and memory that goes back to
 * the system is freed behind it. Before another queue uses it for the first time that one has to
 * wait for the compute queue, and before it is given back the compute queue for that one.
 */
#ifndef TF_EXEC_DEVICE_H
#define TF_EXEC_DEVICE_H

#include "exec/device/kernel.h"
#include "exec/device/step_block.h"

#define DEVICE_ABI 15

struct device_options {
    int threads; /* size of the compute team; 0: as many as cores */
    bool deterministic;
    size_t memory; /* bytes that may be used of a device's own memory; 0: all that it has */
    bool tf32;     /* products of float32 may round what they multiply to 11 bits, where that is
                      faster: NVIDIA's TensorFloat-32 */
    bool fast;     /* bits may differ from run to run, where that is faster: a GPU's convolutions */
    bool exact;    /* what an element is computed of is what it depends on, nothing beside it: no
                      Winograd and no FFT, whose tiles share what is in them */
};

enum queue_kind {
    QUEUE_COMPUTE, /* kernels, and copies within the device */
    QUEUE_IN,      /* copies from the host */
    QUEUE_OUT,     /* copies to the host */
    N_QUEUES
};

struct device_graph; /* work that was captured, the device's own */
struct communicator_functions;
struct device_event; /* all that a queue had at some time, the device's own */

/* Somebody who is told that an event is over; lives until `done` is called, once, by a thread of
 * the device's: with the reason if the device has failed, after which nothing works any more. */
struct event_waiter {
    void (*done)(struct event_waiter *waiter, const struct error *failure);
    struct event_waiter *next; /* the device's */
};

struct device_memory {
    /* One holder; NULL without memory. Given back through the buffer. */
    struct buffer *(*alloc)(struct device *device, size_t bytes);
    /* Host memory that copies well to and from the device; NULL: any does. As alloc. */
    struct buffer *(*alloc_host)(struct device *device, size_t bytes);

    /* Memory of the host that others allocate, in which links leave what they receive, is from
     * `pin` to `unpin` such memory, too; NULL: the device has no such thing. Pinned memory may
     * share pages with memory that is not, and with other pinned memory. An error costs no more
     * than speed. From any thread, one at a time; takes no locks of ours. */
    int (*pin)(struct device *device, const void *data, size_t bytes, struct error *err);
    void (*unpin)(struct device *device, const void *data);

    /* Copies, enqueued in QUEUE_IN, QUEUE_OUT and QUEUE_COMPUTE. The host's memory is the device's
     * until they are over. On a device whose memory is the host's there is `copy` alone, which is
     * over when it returns. ERR_OS, ERR_INTERNAL: the device has failed. */
    int (*copy_in)(struct device *device, void *to, const void *from, size_t bytes,
                   struct error *err);
    int (*copy_out)(struct device *device, void *to, const void *from, size_t bytes,
                    struct error *err);
    int (*copy)(struct device *device, void *to, const void *from, size_t bytes, struct error *err);
};

/* Copies from the memory of one device of the type to that of another. */
struct device_peer {
    /* Returns whether the first copies there without the host; any device of the type knows. */
    bool (*reaches)(struct device *device, int from, int to);
    /* Copies to the memory of the other, enqueued in QUEUE_OUT of this one, if it reaches that
     * memory. Each device waits for the other's events as for its own. */
    int (*copy_to)(struct device *device, void *to, struct device *other, const void *from,
                   size_t bytes, struct error *err);
};

/* Events, from any thread. */
struct device_queue {
    /* The end of all that the queue has by now. The caller that recorded an event not for `notify`
     * calls `event_free`, as soon as nothing more is asked of it. */
    struct device_event *(*record)(struct device *device, enum queue_kind queue, bool timed);
    void (*event_free)(struct device *device, struct device_event *event);
    /* When a timed event was over, which it must be: in nanoseconds of CLOCK_MONOTONIC, as near as
     * the device's clock can tell. */
    int64_t (*time)(struct device *device, struct device_event *event);
    /* Work that the queue gets from now on begins after the event. */
    void (*wait)(struct device *device, enum queue_kind queue, struct device_event *event);
    /* Returns whether it is over. */
    bool (*query)(struct device *device, struct device_event *event);
    /* Has the waiter told when it is, and frees the event; the waiter may end the device's last
     * use, so the caller does not touch the device after it. */
    void (*notify)(struct device *device, struct device_event *event, struct event_waiter *waiter);
    /* Waits for it, and says if the device has failed; not in a step but at its end. */
    int (*block)(struct device *device, struct device_event *event, struct error *err);
};

/* Work that is the same again and again. */
struct device_capture {
    /* Keeps what `enqueue` enqueues from this thread, in place of doing it: in QUEUE_COMPUTE, and
     * in queues that wait there for an event of that one, for which it waits in the end. Addresses
     * stay as they are; what is in memory of the host is looked at when it is launched. Meanwhile
     * the thread asks for no memory, waits for nothing and asks for nothing to be told. An error,
     * which may be `enqueue`'s, leaves nothing enqueued. */
    int (*capture)(struct device *device, int (*enqueue)(void *context), void *context,
                   struct device_graph **graph, struct error *err);
    /* Enqueues it all, as one piece of work of QUEUE_COMPUTE, once at a time. */
    int (*launch)(struct device *device, struct device_graph *graph, struct error *err);
    /* When it is over. */
    void (*free)(struct device *device, struct device_graph *graph);
};

struct device_layout {
    size_t (*bytes)(const struct layout *layout); /* that a tensor of it takes */
    /* Converts input 0 (in_layouts[0], NULL: row-major) to out[0].layout, which the caller sets
     * before prepare (NULL: row-major); prepared with setup->node NULL. */
    const struct kernel_code *relayout;
};

struct device {
    const char *type;     /* "CPU" */
    int index;            /* 0 of CPU:0 */
    bool is_host;         /* memory is the host's: copies are not needed */
    int64_t memory_bytes; /* that it has, and that may be used; 0: the host's, or not known */
    int threads;
    bool deterministic, exact;
    void *context;      /* the device's own */
    void *module;       /* of dlopen */
    const char *choice; /* what was chosen for this machine, for plans: "isa=v4 blas=SkylakeX" */

    /* Kernels that the module brings itself; NULL: those that every tool knows. */
    const struct kernel_table *kernels;
    /* Code of a kernel row by its name; NULL: not in this module. */
    const struct kernel_code *(*code)(struct device *device, const char *name);

    /* The device's abilities; each but `memory` is NULL where it lacks it. */
    const struct device_memory *memory;
    const struct device_queue *queue; /* not where the memory is the host's */
    const struct device_capture *capture;
    const struct device_peer *peer;
    const struct device_layout *layout;
    const struct communicator_functions *communicators; /* exec/device/communicator.h */

    /* Sets the error that a fault of the device's own stands for (its code is FAULT_OWN or above);
     * returns its code. NULL: its kernels leave none. */
    int (*explain)(struct device *device, const struct fault *fault, struct error *err);

    /* Enqueued in QUEUE_COMPUTE: the fault, which is in the device's memory, is left in the block
     * as a kernel would leave it there: unless it is none, or there is one. */
    int (*leave_fault)(struct device *device, struct step_block *block, const struct fault *fault,
                       struct error *err);

    /* Called by a thread before it runs its first kernel: the size of the team it may use. */
    void (*enter_thread)(struct device *device, int threads);

    void (*free)(struct device *device);
};

/* The table that a module exports as "device_entry". */
struct device_entry {
    int abi; /* DEVICE_ABI */
    struct device *(*open)(int index, const struct device_options *options, struct error *err);
};

/* Opens "CPU", 0: loads the best module for the machine. TF_CPU_ISA=base|v3|v4 overrides the
 * choice. For any other type the module is TYPE.so in lower case, in one of the folders that
 * TF_DEVICE_PATH names (separated by colons) or in the folder of the library: "CUDA" is cuda.so.
 * ERR_UNAVAILABLE when there is no such module or device, or no driver for it; ERR_CONFIG when the
 * module is of no use. */
struct device *device_open(const char *type, int index, const struct device_options *options,
                           struct error *err);
void device_free(struct device *device);

/* Memory of the device. One holder; NULL without memory, even though pools (exec/device/pool.h)
 * have given back what nobody uses. */
struct buffer *device_alloc(struct device *device, size_t bytes);

/* Host memory for use with the device. One holder; NULL without memory. */
struct buffer *device_alloc_host(struct device *device, size_t bytes);

#endif
