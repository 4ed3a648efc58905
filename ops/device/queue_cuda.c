/* SPDX-License-Identifier: Apache-2.0
 *
 * Queues, events, and the threads that watch them. CUDA's events are reused, as creating one takes
 * some microseconds. A host function in a stream could also report that an event is over, but after
 * an error it would never be called. So each queue, whose events are over in order, has a thread
 * that sleeps until the next one is.
 */
#include "base/memory.h"
#include "base/time.h"
#include "ops/device/cuda.h"

/* The distance of an event from its anchor is a 24-bit float, its unit half a microsecond. */
#define ANCHOR_NS 4000000000

/* ---- clocks ---- */

static void drop_anchor(struct cuda_device *d, struct cuda_anchor *anchor)
{
    if (!anchor || atomic_fetch_sub(&anchor->holders, 1) > 1)
        return;
    d->driver->event_free(anchor->event);
    mem_free(anchor);
}

/* Returns a reference to the anchor; NULL: the device has failed. */
static struct cuda_anchor *hold_anchor(struct cuda_device *d)
{
    struct error ignored = ERROR_INIT;
    pthread_mutex_lock(&d->clock_lock);
    if (!d->anchor || time_now_ns() - d->anchor->time > ANCHOR_NS) {
        drop_anchor(d, d->anchor);
        d->anchor = mem_alloc(sizeof *d->anchor);
        atomic_init(&d->anchor->holders, 1);
        /* Recorded in a separate stream, which has no other work. */
        int result = d->driver->event_new(true, &d->anchor->event);
        int64_t before = time_now_ns();
        if (!result)
            result = d->driver->event_record(d->anchor->event, d->clock);
        if (!result)
            result = d->driver->event_wait(d->anchor->event);
        d->anchor->time = before + (time_now_ns() - before) / 2;
        if (cuda_check(d, result, "its clock is read", &ignored)) {
            drop_anchor(d, d->anchor);
            d->anchor = NULL;
        }
    }
    struct cuda_anchor *anchor = d->anchor;
    if (anchor)
        atomic_fetch_add(&anchor->holders, 1);
    pthread_mutex_unlock(&d->clock_lock);
    return anchor;
}

static int64_t event_time(struct device *device, struct device_event *event)
{
    struct cuda_device *d = cuda_device(device);
    struct error ignored = ERROR_INIT;
    float ms = 0;
    if (!event->anchor || cuda_enter(d, &ignored))
        return time_now_ns();
    int result = d->driver->event_elapsed(&ms, event->anchor->event, event->event);
    cuda_check(d, result, "a time is asked for", &ignored);
    return event->anchor->time + (int64_t)((double)ms * 1e6);
}

/* ---- events ---- */

static void drop_event(struct cuda_device *d, struct device_event *event)
{
    drop_anchor(d, event->anchor);
    event->anchor = NULL;
    pthread_mutex_lock(&d->lock);
    event->next = d->idle[event->timed];
    d->idle[event->timed] = event;
    pthread_mutex_unlock(&d->lock);
}

static struct device_event *record(struct device *device, enum queue_kind queue, bool timed)
{
    struct cuda_device *d = cuda_device(device);
    struct error ignored = ERROR_INIT; /* the waiter gets the error */
    pthread_mutex_lock(&d->lock);
    struct device_event *event = d->idle[timed];
    if (event)
        d->idle[timed] = event->next;
    pthread_mutex_unlock(&d->lock);
    if (!event) {
        event = mem_alloc(sizeof *event);
        event->timed = timed;
    }
    event->next = NULL;
    if (!event->event && !cuda_enter(d, &ignored))
        cuda_check(d, d->driver->event_new(timed, &event->event), "an event is made", &ignored);

    event->queue = queue;
    if (cuda_enter(d, &ignored))
        return event;
    if (timed)
        event->anchor = hold_anchor(d);
    int result = d->driver->event_record(event->event, cuda_stream(d, queue));
    cuda_check_enqueued(d, result, "an event is recorded", &ignored);
    return event;
}

/* The event may belong to another device, which had failed. */
static void wait_event(struct device *device, enum queue_kind queue, struct device_event *event)
{
    struct cuda_device *d = cuda_device(device);
    struct error ignored = ERROR_INIT;
    if (!event->event || cuda_enter(d, &ignored))
        return;
    int result = d->driver->stream_wait(cuda_stream(d, queue), event->event);
    cuda_check_enqueued(d, result, "an event is waited for", &ignored);
}

static int block(struct device *device, struct device_event *event, struct error *err)
{
    struct cuda_device *d = cuda_device(device);
    int code = cuda_enter(d, err);
    if (!code)
        code = cuda_check(d, d->driver->event_wait(event->event), "work", err);
    if (!code && cuda_has_failed(d, err))
        code = err->code;
    if (!code)
        return 0;
    /* Work enqueued before may still use memory that the receiver of the error will free. */
    d->driver->set_device(d->device.index);
    d->driver->device_wait();
    cuda_has_failed(d, err);
    return err->code;
}

static void event_free(struct device *device, struct device_event *event)
{
    drop_event(cuda_device(device), event);
}

/* ---- watching ---- */

static void *watch(void *argument)
{
    struct cuda_watcher *watcher = argument;
    struct cuda_device *d = watcher->device;
    pthread_mutex_lock(&d->lock);
    while (watcher->first || !watcher->closing) {
        if (watcher->first) {
            /* Waits for the first event, with the lock released meanwhile. */
            struct device_event *event = watcher->first;
            struct error ignored = ERROR_INIT;
            pthread_mutex_unlock(&d->lock);
            block(&d->device, event, &ignored);
            pthread_mutex_lock(&d->lock);
            struct event_waiter *waiter = event->waiter;
            watcher->first = event->next;
            pthread_mutex_unlock(&d->lock);
            drop_event(d, event);
            struct error failure = ERROR_INIT;
            bool failed = cuda_has_failed(d, &failure);
            waiter->done(waiter, failed ? &failure : NULL);
            pthread_mutex_lock(&d->lock);
        } else
            pthread_cond_wait(&watcher->changed, &d->lock);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

static void notify(struct device *device, struct device_event *event, struct event_waiter *waiter)
{
    struct cuda_device *d = cuda_device(device);
    struct cuda_watcher *watcher = &d->watchers[event->queue];
    pthread_mutex_lock(&d->lock);
    if (!watcher->runs)
        BUG_ON(pthread_create(&watcher->thread, NULL, watch, watcher));
    watcher->runs = true;
    event->waiter = waiter;
    event->next = NULL;
    if (watcher->first)
        watcher->last->next = event;
    else
        watcher->first = event;
    watcher->last = event;
    pthread_cond_signal(&watcher->changed);
    pthread_mutex_unlock(&d->lock);
}

/* ---- the whole ---- */

int cuda_queues_open(struct cuda_device *d, struct error *err)
{
    int result = 0;
    for (int i = 0; i < N_QUEUES; i++) {
        d->watchers[i].device = d;
        pthread_cond_init(&d->watchers[i].changed, NULL);
    }
    for (int i = 0; i < N_QUEUES && !result; i++)
        result = d->driver->stream_new(&d->streams[i]);
    if (!result)
        result = d->driver->stream_new(&d->clock);
    return cuda_check(d, result, "a stream is made", err);
}

void cuda_queues_close(struct cuda_device *d)
{
    for (int i = 0; i < N_QUEUES; i++)
        if (d->streams[i]) {
            struct error ignored = ERROR_INIT;
            struct device_event *event = record(&d->device, (enum queue_kind)i, false);
            block(&d->device, event, &ignored);
            drop_event(d, event);
        }
    for (int i = 0; i < N_QUEUES; i++) {
        struct cuda_watcher *watcher = &d->watchers[i];
        pthread_mutex_lock(&d->lock);
        watcher->closing = true;
        pthread_cond_signal(&watcher->changed);
        pthread_mutex_unlock(&d->lock);
        if (watcher->runs)
            pthread_join(watcher->thread, NULL);
        if (watcher->device)
            pthread_cond_destroy(&watcher->changed);
    }
    drop_anchor(d, d->anchor);
    for (int timed = 0; timed < 2; timed++) {
        while (d->idle[timed]) {
            struct device_event *event = d->idle[timed];
            d->idle[timed] = event->next;
            if (event->event)
                d->driver->event_free(event->event);
            mem_free(event);
        }
    }
    for (int i = 0; i < N_QUEUES; i++)
        if (d->streams[i])
            d->driver->stream_free(d->streams[i]);
    if (d->clock)
        d->driver->stream_free(d->clock);
}

const struct device_queue cuda_queue = {
    .record = record,
    .event_free = event_free,
    .time = event_time,
    .wait = wait_event,
    .notify = notify,
    .block = block,
};
