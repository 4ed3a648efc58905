/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums by devices, enqueued by a thread: calls of the library may wait for other members, and what
 * runs on the loop must not. It looks whether the library has lost one, and aborts what is enqueued
 * when the group gives up.
 */
#include "base/container_of.h"
#include "base/memory.h"
#include "base/time.h"
#include "exec/device/pool.h"
#include "exec/device/queue.h"
#include "exec/device/deferred.h"
#include "transport/collective/collective_device.h"

#define LOOK_SECONDS 0.1 /* between questions whether the library has lost a member */

/* What an enqueued sum has come to. */
static void added(struct event_waiter *over, const struct error *failure)
{
    struct device_sum *s = CONTAINER_OF(over, struct device_sum, over);
    struct device_sums *sums = s->sums;
    pthread_mutex_lock(&sums->lock);
    struct error why = failure ? *failure : sums->failed;
    pthread_mutex_unlock(&sums->lock);
    const struct collective_results results = {s->results, s->check.at, sums->place.n};
    if (why.code)
        device_sum_fail(s, &why);
    else
        device_sum_finish(s, &results, NULL);
}

static int make_result(struct device_sum *s, int i, struct error *err)
{
    const struct tensor *value = &s->values[i];
    if (s->call.yields && buffer_is_sole(value->buffer)) {
        tensor_share(&s->results[i], value);
        return 0;
    }
    struct buffer *buffer = pool_alloc(s->call.pool, tensor_bytes(value));
    if (!buffer)
        return error_set(err, ERR_OS, "no memory for %s%s",
                         shape_text_typed(value->type, &value->shape), mem_limit_text());
    s->results[i] = *value;
    s->results[i].buffer = buffer;
    s->results[i].data = buffer->data;
    return 0;
}

static int add_value(struct device_sum *s, int i, struct error *err)
{
    struct device_sums *sums = s->sums;
    if (make_result(s, i, err))
        return err->code;
    const struct communicator_sum sum = {.from = s->values[i].data,
                                         .to = s->results[i].data,
                                         .count = tensor_count(&s->values[i]),
                                         .type = s->values[i].type,
                                         .mean = collective_divides(s->kinds[i])};
    return sum.count
               ? sums->device->communicators->add(sums->communicator, &sum, &sums->gives_up, err)
               : 0;
}

/* What has been enqueued by a failure has to end before its memory may be used again. */
static void enqueue(struct device_sum *s)
{
    struct device *device = s->sums->device;
    struct error err = ERROR_INIT;
    device->wait(device, QUEUE_COMPUTE, s->check.at.ready);
    for (int i = 0; i < s->call.n && !err.code; i++)
        add_value(s, i, &err);
    if (err.code)
        device_sums_give_up(s->sums, &err);
    s->over.done = added;
    queue_notify_end(device, QUEUE_COMPUTE, &s->over);
}

/* With the lock. */
static struct device_sum *find_ready(const struct device_sums *sums)
{
    struct device_sum *s = sums->first;
    bool any = atomic_load(&sums->gives_up);
    while (s && !(s->state == SUM_READY && (any || s->number == sums->next)))
        s = s->next;
    return s;
}

/* The next sum, after a while NULL. */
static struct device_sum *wait_for_sum(struct device_sums *sums)
{
    const struct timespec until = time_after(LOOK_SECONDS);
    struct device_sum *s;
    pthread_mutex_lock(&sums->lock);
    while (!(s = find_ready(sums)) && !sums->closing &&
           !(atomic_load(&sums->gives_up) && sums->communicator) &&
           pthread_cond_timedwait(&sums->changed, &sums->lock, &until) == 0)
        ;
    if (s) {
        s->state = SUM_ENQUEUED;
        sums->next++;
    }
    pthread_mutex_unlock(&sums->lock);
    return s;
}

static void nothing(void *argument)
{
    (void)argument;
}

/* Who waits for it on the loop looks again. */
static void join_others(struct device_sums *sums)
{
    struct error err = ERROR_INIT;
    struct device *device = sums->device;
    sums->communicator = device->communicators->join(device, &sums->place, &sums->gives_up, &err);
    if (!sums->communicator)
        device_sums_give_up(sums, &err);
    pthread_mutex_lock(&sums->lock);
    sums->join = sums->communicator ? JOIN_DONE : JOIN_FAILED;
    pthread_mutex_unlock(&sums->lock);
    loop_post(hub_loop(sums->group->hub), nothing, NULL);
}

static void look_after(struct device_sums *sums)
{
    struct error err = ERROR_INIT;
    const struct communicator_functions *calls = sums->device->communicators;
    if (!sums->communicator)
        return;
    if (!atomic_load(&sums->gives_up) && calls->check(sums->communicator, &err))
        device_sums_give_up(sums, &err);
    if (!atomic_load(&sums->gives_up))
        return;
    calls->abort(sums->communicator);
    calls->free(sums->communicator);
    sums->communicator = NULL;
}

static bool is_closing(struct device_sums *sums)
{
    pthread_mutex_lock(&sums->lock);
    bool closing = sums->closing;
    pthread_mutex_unlock(&sums->lock);
    return closing;
}

void *device_sums_run(void *argument)
{
    struct device_sums *sums = argument;
    thread_enter_device(sums->device, 1);
    join_others(sums);
    while (!is_closing(sums)) {
        struct device_sum *s = wait_for_sum(sums);
        if (s && sums->communicator)
            enqueue(s);
        else if (s)
            device_sum_fail(s, &sums->failed);
        look_after(sums);
    }
    atomic_store(&sums->gives_up, true);
    look_after(sums);
    return NULL;
}
