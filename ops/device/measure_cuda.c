/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/device/measure_cuda.h"

#include <stdlib.h>

#include "ops/device/cuda.h"

#define RUNS 5

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
