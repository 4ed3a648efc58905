/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA calls that the device makes, as one table with types of its own. So the device can be
 * compiled and tested without CUDA and without a card, over a table of the tests.
 *
 * The real table (driver_real_cuda.c) is CUDA's runtime, linked statically: kernels compiled by
 * nvcc need it anyway, for registration and launch, and libraries (cuBLAS, cuDNN) share its
 * context, with streams and memory. It loads the driver, libcuda.so.1, at its first call, so that
 * one build serves machines with and without it.
 *
 * Calls return 0 or a CUDA error. Any thread may make them, but for a capturing stream only the
 * thread that began the capture. Calls without a stream or an event refer to the device that the
 * thread has set.
 */
#ifndef TF_OPS_DEVICE_DRIVER_CUDA_H
#define TF_OPS_DEVICE_DRIVER_CUDA_H

#include <stdbool.h>
#include <stddef.h>

struct cuda_stream;
struct cuda_event;
struct cuda_graph;

/* The CUDA errors with a special meaning; after any other the device has failed. */
enum cuda_result {
    CUDA_OK = 0,
    CUDA_NO_MEMORY = 2,
    CUDA_OLD_DRIVER = 35, /* or none */
    CUDA_NO_DEVICE = 100,
    CUDA_ALREADY_PINNED = 712,
};

enum cuda_direction { CUDA_TO_DEVICE = 1, CUDA_TO_HOST = 2, CUDA_WITHIN_DEVICE = 3 };

/* Properties of a device, read before it is used. */
struct cuda_card {
    size_t memory;
    int major, minor; /* compute capability: 9.0 */
    bool has_pools;   /* stream-ordered memory */
};

struct cuda_peer_copy {
    int from_device, to_device;
    const void *from;
    void *to;
    size_t bytes;
};

struct cuda_driver {
    /* 1000 * major + 10 * minor. The driver's is 0 if there is none. */
    int (*versions)(int *driver, int *runtime);
    int (*device_count)(int *count);
    int (*card)(int device, struct cuda_card *card);
    int (*set_device)(int device); /* of the thread */
    int (*device_wait)(void);      /* until all work is done, or never will be */
    const char *(*error_text)(int error);

    /* Stream-ordered device memory: work enqueued after the allocation may use it, and freeing
     * takes effect after the work enqueued before. Freed memory is kept for the next call;
     * `memory_trim` returns it. NULL is harmless. */
    int (*memory_alloc)(struct cuda_stream *stream, size_t bytes, void **memory);
    int (*memory_free)(struct cuda_stream *stream, void *memory);
    int (*memory_keep)(int device);
    int (*memory_trim)(int device);

    /* Pinned host memory: new, or whole pages of existing memory. */
    int (*host_alloc)(size_t bytes, void **memory);
    int (*host_free)(void *memory);
    int (*host_register)(void *memory, size_t bytes);
    int (*host_unregister)(void *memory);

    /* A stream that waits for no other unless told to. It may be freed before its work is done. */
    int (*stream_new)(struct cuda_stream **stream);
    int (*stream_free)(struct cuda_stream *stream);
    int (*stream_wait)(struct cuda_stream *stream, struct cuda_event *event);
    int (*copy)(struct cuda_stream *stream, void *to, const void *from, size_t bytes,
                enum cuda_direction direction);

    /* Tells whether a device can access the memory of another; `peer_enable` enables it. A copy
     * between them belongs to a stream of the first; without access it goes through the host. A
     * stream may wait for events of any device. */
    int (*peer_can)(int device, int other, bool *can);
    int (*peer_enable)(int device, int other); /* `device` is the thread's */
    int (*copy_peer)(struct cuda_stream *stream, const struct cuda_peer_copy *copy);

    /* A thread that waits for an event sleeps. An event stands for the work in the stream when it
     * was last recorded. It may be recorded again, or freed, while streams wait for it. */
    int (*event_new)(bool timed, struct cuda_event **event);
    int (*event_free)(struct cuda_event *event);
    int (*event_record)(struct cuda_event *event, struct cuda_stream *stream);
    int (*event_wait)(struct cuda_event *event);
    int (*event_elapsed)(float *milliseconds, struct cuda_event *from, struct cuda_event *to);

    /* Records the work put into the stream, and into streams that wait for one of its events.
     * Meanwhile the calling thread may do nothing that waits for the device; others may.
     * `capture_end` makes a launchable graph; after an error there is none, and the capture is
     * over. */
    int (*capture_begin)(struct cuda_stream *stream);
    int (*capture_end)(struct cuda_stream *stream, struct cuda_graph **graph);
    int (*graph_launch)(struct cuda_graph *graph, struct cuda_stream *stream);
    int (*graph_free)(struct cuda_graph *graph);
};

extern const struct cuda_driver cuda_driver_real;

#endif
