/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/device/measure_cuda.h"

#include <stdlib.h>

#include "base/map.h"
#include "ops/device/cuda.h"
#include "ops/device/kernel_cuda.h"

#define RUNS 5
#define PATTERN 65521 /* values; prime, so that no two rows of a matrix are alike */
#define ALIGNED(bytes) (((bytes) + (size_t)255) & ~(size_t)255) /* alignment of allocations */

/* ---- memory ---- */

static bool wait_queue(struct cuda_device *d, enum queue_kind queue)
{
    struct cuda_event *over = NULL;
    bool works = !d->driver->event_new(false, &over) &&
                 !d->driver->event_record(over, cuda_stream(d, queue)) &&
                 !d->driver->event_wait(over);
    if (over)
        d->driver->event_free(over);
    return works;
}

/* Fills memory with a pattern of numbers, repeated by copying. */
static bool fill(struct device *device, enum cuda_type type, char *data, size_t bytes)
{
    struct shape shape = shape_vector(PATTERN);
    struct tensor pattern = TENSOR_INIT;
    struct error ignored = ERROR_INIT;
    size_t done = PATTERN * (size_t)cuda_float_bytes(type);
    done = done < bytes ? done : bytes;
    if (tensor_alloc(&pattern, cuda_dtype(type), &shape, &ignored))
        return false;
    for (int64_t i = 0; i < PATTERN; i++)
        tensor_set_float64(&pattern, i, (double)(hash_bytes(&i, sizeof i, 0) >> 11) * 0x1p-53);
    bool works = wait_queue(cuda_device(device), QUEUE_COMPUTE) && /* the memory belongs to it */
                 !device->memory->copy(device, QUEUE_IN, data, pattern.data, done, &ignored);
    works = wait_queue(cuda_device(device), QUEUE_IN) && works;
    for (size_t n; works && done < bytes; done += n) {
        n = done < bytes - done ? done : bytes - done;
        works = !device->memory->copy(device, QUEUE_COMPUTE, data + done, data, n, &ignored);
    }
    tensor_release(&pattern);
    return works;
}

struct buffer *cuda_trial_memory(struct device *device, enum cuda_type type,
                                 struct cuda_trial_part *parts, int n)
{
    size_t bytes = 0, filled = 0;
    for (int i = 0; i < n; i++)
        filled = bytes, bytes += ALIGNED(parts[i].bytes);
    struct buffer *buffer = device->memory->alloc(device, bytes);
    if (buffer && !fill(device, type, buffer->data, filled)) {
        buffer->free(buffer);
        return NULL;
    }
    char *at = buffer ? buffer->data : NULL;
    for (int i = 0; i < n && at; at += ALIGNED(parts[i].bytes), i++)
        parts[i].data = at;
    return buffer;
}

/* ---- time ---- */

struct stopwatch {
    struct cuda_event *begin, *end;
};

static bool run(struct cuda_device *d, const struct stopwatch *w,
                int (*enqueue)(const void *context), const void *context, float *ms)
{
    struct cuda_stream *stream = cuda_stream(d, QUEUE_COMPUTE);
    return !d->driver->event_record(w->begin, stream) && !enqueue(context) &&
           !d->driver->event_record(w->end, stream) && !d->driver->event_wait(w->end) &&
           !d->driver->event_elapsed(ms, w->begin, w->end);
}

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

bool cuda_measure(struct cuda_device *d, int (*enqueue)(const void *context), const void *context,
                  float *median)
{
    struct stopwatch w = {0};
    float times[RUNS];
    bool done = !d->driver->event_new(true, &w.begin) && !d->driver->event_new(true, &w.end) &&
                run(d, &w, enqueue, context, &times[0]);
    for (int i = 0; i < RUNS && done; i++)
        done = run(d, &w, enqueue, context, &times[i]);
    if (w.begin)
        d->driver->event_free(w.begin);
    if (w.end)
        d->driver->event_free(w.end);
    if (!done)
        return false;
    qsort(times, RUNS, sizeof *times, compare);
    *median = times[RUNS / 2];
    return true;
}
