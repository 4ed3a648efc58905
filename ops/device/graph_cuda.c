/* SPDX-License-Identifier: Apache-2.0
 *
 * Captured work is a CUDA graph. A capturing stream records work from any thread, and a stream that
 * waits for it captures, too. So a thread that captures has its own streams for all queues.
 */
#include "ops/device/cuda.h"

/* The calling thread's capture. */
static _Thread_local struct capture {
    struct cuda_device *device; /* NULL: it captures nothing */
    struct cuda_stream *streams[N_QUEUES];
    struct error failure;
} capturing;

struct cuda_stream *cuda_stream(struct cuda_device *d, enum queue_kind queue)
{
    return capturing.device == d ? capturing.streams[queue] : d->streams[queue];
}

int cuda_check_enqueued(struct cuda_device *d, int result, const char *what, struct error *err)
{
    if (!result || capturing.device != d)
        return cuda_check(d, result, what, err);
    if (!capturing.failure.code)
        error_set(&capturing.failure, ERR_INTERNAL, "%s cannot be captured: %s", what,
                  d->driver->error_text(result));
    *err = capturing.failure;
    return err->code;
}

/* Ends the capture in any case, as the thread could do nothing else before. */
static int end_capture(struct cuda_device *d, int code, struct cuda_graph **graph,
                       struct error *err)
{
    struct error failure = capturing.failure;
    int result = d->driver->capture_end(capturing.streams[QUEUE_COMPUTE], graph);
    capturing.device = NULL;
    if (!code && !failure.code && !result)
        return 0;
    if (!result && *graph)
        d->driver->graph_free(*graph);
    *graph = NULL;
    if (code)
        return error_set(err, ERR_INTERNAL, "what was to be captured failed");
    if (!failure.code)
        error_set(&failure, ERR_INTERNAL, "what was captured is no graph: %s",
                  d->driver->error_text(result));
    *err = failure;
    return err->code;
}

static int capture(struct device *device, int (*enqueue)(void *context), void *context,
                   struct device_graph **captured, struct error *err)
{
    struct cuda_device *d = cuda_device(device);
    struct cuda_graph *graph = NULL;
    if (cuda_enter(d, err))
        return err->code;
    int code, result = 0;
    capturing.failure = error_none();
    for (int i = 0; i < N_QUEUES && !result; i++)
        result = d->driver->stream_new(&capturing.streams[i]);
    if (!result)
        result = d->driver->capture_begin(capturing.streams[QUEUE_COMPUTE]);
    if (result)
        code = error_set(err, ERR_OS, "nothing can be captured: %s", d->driver->error_text(result));
    else {
        capturing.device = d;
        code = end_capture(d, enqueue(context), &graph, err);
    }
    for (int i = 0; i < N_QUEUES; i++) {
        if (capturing.streams[i])
            d->driver->stream_free(capturing.streams[i]);
        capturing.streams[i] = NULL;
    }
    *captured = (struct device_graph *)graph;
    return code;
}

static int launch(struct device *device, struct device_graph *graph, struct error *err)
{
    struct cuda_device *d = cuda_device(device);
    if (cuda_enter(d, err))
        return err->code;
    int result = d->driver->graph_launch((struct cuda_graph *)graph, d->streams[QUEUE_COMPUTE]);
    return cuda_check(d, result, "a step is launched", err);
}

static void free_graph(struct device *device, struct device_graph *graph)
{
    struct cuda_device *d = cuda_device(device);
    struct error ignored = ERROR_INIT;
    cuda_enter(d, &ignored); /* frees graphs of a failed device, too */
    d->driver->graph_free((struct cuda_graph *)graph);
}

const struct device_capture cuda_capture = {
    .capture = capture,
    .launch = launch,
    .free = free_graph,
};
