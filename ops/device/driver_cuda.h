/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls of CUDA that the device makes, as one table with types of its own: the device is
 * compiled and tested where there is neither CUDA nor a card, over a table of the tests' own.
 *
 * The real table (driver_real_cuda.c) is CUDA's runtime, linked statically: kernels that nvcc has
 * compiled need it in any case, to register and launch them, and the streams and the memory of
 * others (cuBLAS, cuDNN) are those of the same context. It looks for the driver, libcuda.so.1, when
 * it is first called, so that one build serves machines with and without.
 *
 * Calls return 0 or an error of CUDA's. All may be called by any thread; those of a stream that
 * captures only by the thread that began. Calls without a stream or an event are for the device
 * that the thread has set.
 */
#ifndef TF_OPS_DEVICE_DRIVER_CUDA_H
#define TF_OPS_DEVICE_DRIVER_CUDA_H

#include <stdbool.h>
#include <stddef.h>

struct cuda_stream;
struct cuda_event;
struct cuda_graph;

/* The errors of CUDA that mean something to the device; any other has failed it. */
enum cuda_result {
    CUDA_OK = 0,
    CUDA_NO_MEMORY = 2,
    CUDA_OLD_DRIVER = 35, /* or none */
    CUDA_NO_DEVICE = 100,
    CUDA_NOT_READY = 600,
    CUDA_ALREADY_PINNED = 712,
};

enum cuda_direction { CUDA_TO_DEVICE = 1, CUDA_TO_HOST = 2, CUDA_WITHIN_DEVICE = 3 };

/* The facts of a device before it is used. */
struct cuda_card {
    size_t memory;
    int major, minor; /* what it can: 9.0 */
    bool has_pools;   /* memory ordered by streams */
};

struct cuda_peer_copy {
    int from_device, to_device;
    const void *from;
    void *to;
    size_t bytes;
};

struct cuda_driver {
    /* 1000 * major + 10 * minor. The driver's is 0 where there is none. */
    int (*versions)(int *driver, int *runtime);
    int (*device_count)(int *count);
    int (*card)(int device, struct cuda_card *card);
    int (*set_device)(int device); /* of the thread */
    int (*device_wait)(void);      /* until nothing is left to be done, or ever will be */
    const char *(*error_text)(int error);

    /* Memory of the device, ordered by the stream: valid for what it gets from now on, and until
     * what it has had by then is over. Freed memory is kept for the next call; `memory_trim` gives
     * that back. NULL is nobody's. */
    int (*memory_alloc)(struct cuda_stream *stream, size_t bytes, void **memory);
    int (*memory_free)(struct cuda_stream *stream, void *memory);
    int (*memory_keep)(int device);
    int (*memory_trim)(int device);

    /* Memory of the host that stays where it is: new, or whole pages of what is there. */
    int (*host_alloc)(size_t bytes, void **memory);
    int (*host_free)(void *memory);
    int (*host_register)(void *memory, size_t bytes);
    int (*host_unregister)(void *memory);

    /* A stream that waits for no other unless it is told to. It may be freed before its work is
     * over. */
    int (*stream_new)(struct cuda_stream **stream);
    int (*stream_free)(struct cuda_stream *stream);
    int (*stream_wait)(struct cuda_stream *stream, struct cuda_event *event);
    int (*copy)(struct cuda_stream *stream, void *to, const void *from, size_t bytes,
                enum cuda_direction direction);

    /* Returns whether a device reads and writes memory of another; from `peer_enable` on it does. A
     * copy between their memories is of a stream of the first, and goes by way of the host without
     * that. A stream may wait for events of any device. */
    int (*peer_can)(int device, int other, bool *can);
    int (*peer_enable)(int device, int other); /* the first is the thread's */
    int (*copy_peer)(struct cuda_stream *stream, const struct cuda_peer_copy *copy);

    /* A thread that waits for an event sleeps. It stands for what the stream had when it was
     * recorded last, may be recorded again while streams wait for that, and freed. */
    int (*event_new)(bool timed, struct cuda_event **event);
    int (*event_free)(struct cuda_event *event);
    int (*event_record)(struct cuda_event *event, struct cuda_stream *stream);
    int (*event_query)(struct cuda_event *event); /* CUDA_NOT_READY: it is not over */
    int (*event_wait)(struct cuda_event *event);
    int (*event_elapsed)(float *milliseconds, struct cuda_event *from, struct cuda_event *to);

    /* The work that the stream gets is recorded, and that of streams that wait for an event of it.
     * The calling thread may do nothing meanwhile that waits for the device; others may.
     * `capture_end` makes of it what can be launched; after an error there is none, and the stream
     * captures no more. */
    int (*capture_begin)(struct cuda_stream *stream);
    int (*capture_end)(struct cuda_stream *stream, struct cuda_graph **graph);
    int (*graph_launch)(struct cuda_graph *graph, struct cuda_stream *stream);
    int (*graph_free)(struct cuda_graph *graph);
};

extern const struct cuda_driver cuda_driver_real;

#endif
