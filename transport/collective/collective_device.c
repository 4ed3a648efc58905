/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums that devices of all members add among themselves (exec/device/communicator.h), over wires
 * that their library finds. The library wants all members to ask for the same sums in the same
 * order, and waits for ever for one that does not. So members meet over their links before each:
 *
 * 1. When the values are there, and no kernel has left a fault, the member says what it brings; the
 *    first member numbers the call as well. All hear of all, as of any other round: of who brings
 *    something else, declines, or is lost.
 * 2. A thread of the group's enqueues sums by their numbers, and tells who waits when the device
 *    has added: calls of the library may wait for other members, and what runs on the loop must
 *    not. It looks whether the library has lost one as well.
 *
 * Where a member has left, the values of that call go over the links from host memory, as all
 * others do. When one is lost, or a call is cancelled that others go on with, the communicator is
 * aborted, so that what is enqueued ends; nothing can meet any more.
 */
#include <string.h>

#include "base/container_of.h"
#include "base/memory.h"
#include "base/thread.h"
#include "base/time.h"
#include "exec/device/deferred.h"
#include "exec/device/queue.h"
#include "exec/step/device_point.h"
#include "transport/collective/collective_private.h"

#define LOOK_SECONDS 0.1 /* between questions whether the library has lost a member */

enum sum_state {
    SUM_COMPUTED, /* the values, or a fault, are awaited; the first, so that zeroed is that */
    SUM_MEETING,
    SUM_READY,    /* the thread is to enqueue it */
    SUM_ENQUEUED, /* it does, or the device adds */
    SUM_COPIED,   /* values are on their way to the host */
    SUM_LINKED,   /* and go over the links */
};

/* A call. The list holds it until it is over, and so does who looks at it without the lock. */
struct device_sum {
    struct device_sum *next;
    struct device_sums *sums;
    int holders;
    enum sum_state state;
    struct collective_waiter *waiter; /* NULL: nobody waits any more */
    struct collective_call call;      /* with values and names of its own */
    char *name, *host_name;           /* keys of its rounds: of what it brings, and of values */
    enum collective_kind *kinds;
    struct tensor *values, *results;
    struct copy_out copy; /* of the fault alone; then of the values, too, if need be */
    struct collective_waiter meeting;
    int64_t number; /* from 1 on */
    struct event_waiter over;
};

struct device_sums {
    struct process_group *group;
    struct device *device;
    struct communicator_place place;
    pthread_t thread;
    atomic_bool gives_up;
    struct communicator *communicator; /* the thread's own */
    pthread_mutex_t lock;              /* guards what follows, and the state of sums */
    pthread_cond_t changed;
    enum { JOIN_WAITS, JOIN_DONE, JOIN_FAILED } join;
    bool closing;
    struct error failed; /* nothing is added any more */
    int64_t given, next; /* numbers: the last that this member gave, the next to be enqueued */
    struct device_sum *first;
};

/* ---- the end of a call ---- */

static void release(struct device_sum *s)
{
    pthread_mutex_lock(&s->sums->lock);
    bool last = !--s->holders;
    pthread_mutex_unlock(&s->sums->lock);
    if (!last)
        return;
    copy_out_release(&s->copy);
    for (int i = 0; i < s->call.n; i++) {
        tensor_release(&s->values[i]);
        tensor_release(&s->results[i]);
    }
    mem_free(s->values);
    mem_free(s->results);
    mem_free(s->kinds);
    mem_free(s->name);
    mem_free(s->host_name);
    mem_free(s);
}

/* Takes it off the list, and tells who waits. */
static void finish(struct device_sum *s, const struct collective_results *results,
                   const struct error *failure)
{
    struct device_sums *sums = s->sums;
    pthread_mutex_lock(&sums->lock);
    struct device_sum **at = &sums->first;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    struct collective_waiter *waiter = s->waiter;
    s->waiter = NULL;
    pthread_mutex_unlock(&sums->lock);
    if (waiter)
        waiter->done(waiter, results, failure);
    release(s);
}

static void fail(struct device_sum *s, const struct error *why)
{
    struct error err = *why;
    error_waited(&err, "'%s'", s->name);
    finish(s, NULL, &err);
}

void device_sums_give_up(struct device_sums *sums, const struct error *why)
{
    pthread_mutex_lock(&sums->lock);
    if (!sums->failed.code)
        sums->failed = *why;
    atomic_store(&sums->gives_up, true);
    pthread_cond_broadcast(&sums->changed);
    pthread_mutex_unlock(&sums->lock);
}

/* ---- over the links after all ---- */

static void linked(struct collective_waiter *waiter, const struct collective_results *results,
                   const struct error *failure)
{
    finish(CONTAINER_OF(waiter, struct device_sum, meeting), results, failure);
}

/* False: nobody waits any more. */
static bool enter(struct device_sum *s, enum sum_state state)
{
    pthread_mutex_lock(&s->sums->lock);
    s->state = state;
    bool is_awaited = s->waiter != NULL;
    pthread_mutex_unlock(&s->sums->lock);
    return is_awaited;
}

static void copied(struct copy_out *copy, const struct error *failure)
{
    struct device_sum *s = CONTAINER_OF(copy, struct device_sum, copy);
    struct collective_call call = s->call;
    s->meeting.done = linked;
    if (failure || !enter(s, SUM_LINKED)) {
        finish(s, NULL, failure);
        return;
    }
    call.key.name = s->host_name;
    call.values = copy->to;
    call.at = (struct device_point){0};
    links_reduce(&s->sums->group->interface, &call, &s->meeting);
}

static void bring_to_host(struct device_sum *s)
{
    struct error err = ERROR_INIT;
    s->copy.from = s->values;
    s->copy.to = s->results;
    s->copy.n = s->call.n;
    s->copy.done = copied;
    enter(s, SUM_COPIED);
    if (copy_out_enqueue(&s->copy, s->call.host_pool, &err))
        finish(s, NULL, &err);
    else
        copy_out_notify(&s->copy);
}

/* ---- meeting ---- */

static int64_t digest(const struct device_sum *s)
{
    return (int64_t)values_sign(s->kinds, s->values, s->call.n, (uint64_t)s->call.n);
}

static void met(struct collective_waiter *waiter, const struct collective_results *results,
                const struct error *failure)
{
    struct device_sum *s = CONTAINER_OF(waiter, struct device_sum, meeting);
    struct device_sums *sums = s->sums;
    struct error err = ERROR_INIT;
    bool same = true;
    for (int k = 0; !failure && k < results->members && same; k++)
        same = ((const int64_t *)results->values[1].data)[k] == digest(s);
    if (failure) {
        finish(s, NULL, failure);
    } else if (results->members != sums->place.n) {
        bring_to_host(s);
    } else if (!same) {
        error_set(&err, ERR_DATA, "'%s': the workers bring different types, shapes or reductions",
                  s->name);
        finish(s, NULL, &err);
    } else {
        pthread_mutex_lock(&sums->lock);
        s->number = *(const int64_t *)results->values[0].data;
        s->state = SUM_READY;
        pthread_cond_broadcast(&sums->changed);
        pthread_mutex_unlock(&sums->lock);
    }
}

/* The values are there. */
static void computed(struct copy_out *copy, const struct error *failure)
{
    static const enum collective_kind kinds[2] = {COLLECTIVE_FIRST, COLLECTIVE_ROWS};
    const struct shape row = shape_vector(1);
    struct device_sum *s = CONTAINER_OF(copy, struct device_sum, copy);
    struct device_sums *sums = s->sums;
    struct tensor facts[2] = {TENSOR_INIT, TENSOR_INIT}; /* the call's number, and its digest */
    struct error err = ERROR_INIT;
    s->meeting.done = met;
    if (failure || !enter(s, SUM_MEETING)) {
        finish(s, NULL, failure);
    } else if (tensor_alloc(&facts[0], INT64, &row, &err) ||
               tensor_alloc(&facts[1], INT64, &row, &err)) {
        finish(s, NULL, &err);
    } else {
        const struct collective_call call = {.key = s->call.key,
                                             .values = facts,
                                             .kinds = kinds,
                                             .n = 2,
                                             .priority = s->call.priority};
        pthread_mutex_lock(&sums->lock);
        *(int64_t *)facts[0].data = ++sums->given;
        pthread_mutex_unlock(&sums->lock);
        *(int64_t *)facts[1].data = digest(s);
        links_reduce(&sums->group->interface, &call, &s->meeting);
    }
    for (int i = 0; i < 2; i++)
        tensor_release(&facts[i]);
}

/* ---- calls ---- */

void device_sums_reduce(struct device_sums *sums, const struct collective_call *call,
                        struct collective_waiter *waiter)
{
    struct device_sum *s = mem_alloc(sizeof *s);
    struct str host_name = STR_INIT;
    struct error err = ERROR_INIT;
    size_t n = (size_t)call->n;
    *s = (struct device_sum){.sums = sums, .holders = 1, .waiter = waiter, .call = *call};
    str_printf(&host_name, "%s/host", call->key.name);
    s->name = mem_strdup(call->key.name);
    s->host_name = mem_strdup(str_text(&host_name));
    str_release(&host_name);
    s->kinds = mem_array(n + 1, sizeof *s->kinds);
    s->values = mem_array(n + 1, sizeof *s->values);
    s->results = mem_array(n + 1, sizeof *s->results);
    for (size_t i = 0; i < n; i++) {
        s->kinds[i] = call->kinds[i];
        tensor_share(&s->values[i], &call->values[i]);
    }
    s->call.key.name = s->name;
    s->call.kinds = s->kinds;
    s->call.values = s->values;
    s->call.schedule = (struct collective_schedule){0};
    s->call.by_device = false;
    s->copy = (struct copy_out){.at = call->at, .done = computed};
    pthread_mutex_lock(&sums->lock);
    s->next = sums->first;
    sums->first = s;
    struct error failed = sums->failed;
    pthread_mutex_unlock(&sums->lock);
    if (failed.code)
        fail(s, &failed);
    else if (copy_out_enqueue(&s->copy, call->host_pool, &err))
        finish(s, NULL, &err);
    else
        copy_out_notify(&s->copy);
}

/* ---- the thread: joins the others, and enqueues sums that are ready ---- */

/* What an enqueued sum has come to. */
static void added(struct event_waiter *over, const struct error *failure)
{
    struct device_sum *s = CONTAINER_OF(over, struct device_sum, over);
    struct device_sums *sums = s->sums;
    pthread_mutex_lock(&sums->lock);
    struct error why = failure ? *failure : sums->failed;
    pthread_mutex_unlock(&sums->lock);
    const struct collective_results results = {s->results, s->copy.at, sums->place.n};
    if (why.code)
        fail(s, &why);
    else
        finish(s, &results, NULL);
}

static int add_value(struct device_sum *s, int i, struct error *err)
{
    struct device_sums *sums = s->sums;
    const struct tensor *value = &s->values[i];
    struct tensor *result = &s->results[i];
    if (s->call.yields && buffer_is_sole(value->buffer)) {
        tensor_share(result, value);
    } else {
        struct buffer *buffer = pool_alloc(s->call.pool, tensor_bytes(value));
        if (!buffer)
            return error_set(err, ERR_OS, "no memory for %s%s",
                             shape_text_typed(value->type, &value->shape), mem_limit_text());
        *result = *value;
        result->buffer = buffer;
        result->data = buffer->data;
    }
    const struct communicator_sum sum = {.from = value->data,
                                         .to = result->data,
                                         .count = tensor_count(value),
                                         .type = value->type,
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
    device->queue->wait(device, QUEUE_COMPUTE, s->copy.at.ready);
    for (int i = 0; i < s->call.n && !err.code; i++)
        add_value(s, i, &err);
    if (err.code)
        device_sums_give_up(s->sums, &err);
    s->over.done = added;
    queue_notify_end(device, QUEUE_COMPUTE, &s->over);
}

/* The next sum, after a while NULL; *closing: there will be none. */
static struct device_sum *wait_for_sum(struct device_sums *sums, bool *closing)
{
    const struct timespec until = time_after(LOOK_SECONDS);
    struct device_sum *s;
    int failed = 0;
    pthread_mutex_lock(&sums->lock);
    for (;;) {
        bool gives_up = atomic_load(&sums->gives_up);
        s = sums->first;
        while (s && !(s->state == SUM_READY && (gives_up || s->number == sums->next)))
            s = s->next;
        if (s || failed || sums->closing || (gives_up && sums->communicator))
            break;
        failed = pthread_cond_timedwait(&sums->changed, &sums->lock, &until);
    }
    if (s) {
        s->state = SUM_ENQUEUED;
        sums->next++;
    }
    *closing = sums->closing;
    pthread_mutex_unlock(&sums->lock);
    return s;
}

static void nothing(void *argument)
{
    (void)argument;
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

static void *run_sums(void *argument)
{
    struct device_sums *sums = argument;
    struct device *device = sums->device;
    struct error err = ERROR_INIT;
    thread_enter_device(device, 1);
    sums->communicator = device->communicators->join(device, &sums->place, &sums->gives_up, &err);
    if (!sums->communicator)
        device_sums_give_up(sums, &err);
    pthread_mutex_lock(&sums->lock);
    sums->join = sums->communicator ? JOIN_DONE : JOIN_FAILED;
    bool closing = sums->closing;
    pthread_mutex_unlock(&sums->lock);
    loop_post(hub_loop(sums->group->hub), nothing, NULL); /* who waits for it there looks again */
    while (!closing) {
        struct device_sum *s = wait_for_sum(sums, &closing);
        if (s && sums->communicator)
            enqueue(s);
        else if (s)
            fail(s, &sums->failed);
        look_after(sums);
    }
    atomic_store(&sums->gives_up, true);
    look_after(sums);
    return NULL;
}

/* ---- for the group ---- */

/* What is left of a call that nobody waits for, by its state. Where others go on with it, they are
 * told by the end of what is enqueued there. */
enum withdrawal {
    WITHDRAW_LATER, /* whoever goes on with it ends it */
    WITHDRAW_ROUND,
    WITHDRAW_ALL, /* the communicator is given up */
};
static const enum withdrawal withdrawals[] = {
    [SUM_COMPUTED] = WITHDRAW_LATER, [SUM_MEETING] = WITHDRAW_ROUND, [SUM_READY] = WITHDRAW_ALL,
    [SUM_ENQUEUED] = WITHDRAW_ALL,   [SUM_COPIED] = WITHDRAW_LATER,  [SUM_LINKED] = WITHDRAW_ROUND,
};

bool device_sums_cancel(struct device_sums *sums, struct collective_waiter *waiter)
{
    enum sum_state state = SUM_COMPUTED;
    pthread_mutex_lock(&sums->lock);
    struct device_sum *s = sums->first;
    while (s && s->waiter != waiter)
        s = s->next;
    if (s) {
        s->waiter = NULL;
        s->holders++;
        state = s->state;
    }
    pthread_mutex_unlock(&sums->lock);
    if (!s)
        return false;
    if (withdrawals[state] == WITHDRAW_ROUND &&
        links_cancel(&sums->group->interface, &s->meeting)) {
        finish(s, NULL, NULL);
    } else if (withdrawals[state] == WITHDRAW_ALL) {
        struct error why = ERROR_INIT;
        error_set(&why, ERR_CANCELLED, "a sum on devices was given up");
        device_sums_give_up(sums, &why);
    }
    release(s);
    return true;
}

static bool is_over(void *context)
{
    struct device_sums *sums = context;
    pthread_mutex_lock(&sums->lock);
    bool over = sums->join != JOIN_WAITS;
    pthread_mutex_unlock(&sums->lock);
    return over;
}

static void sums_free(struct device_sums *sums)
{
    pthread_cond_destroy(&sums->changed);
    pthread_mutex_destroy(&sums->lock);
    mem_free(sums);
}

int collective_links_add_on(struct collective *collective, struct device *device,
                            const struct communicator_place *place, struct error *err)
{
    struct process_group *group = (struct process_group *)collective;
    struct device_sums *sums = mem_alloc(sizeof *sums);
    *sums = (struct device_sums){.group = group, .device = device, .place = *place, .next = 1};
    sums->failed = error_none();
    pthread_mutex_init(&sums->lock, NULL);
    time_cond_init(&sums->changed);
    if (thread_start(&sums->thread, run_sums, sums)) {
        sums_free(sums);
        return error_set(err, ERR_OS, "no thread for sums on devices");
    }
    pthread_mutex_lock(&group->lock);
    group->sums = sums;
    struct error failed = group->failed;
    pthread_mutex_unlock(&group->lock);
    if (failed.code)
        device_sums_give_up(sums, &failed);
    while (!loop_run_until(hub_loop(group->hub), is_over, sums, -1))
        ;
    pthread_mutex_lock(&sums->lock);
    if (sums->join == JOIN_FAILED)
        *err = sums->failed;
    pthread_mutex_unlock(&sums->lock);
    collective->adds_on = err->code ? NULL : device;
    return err->code;
}

/* Nobody calls any more. Rounds that nobody answers have left theirs in the list; of what was
 * enqueued nothing is. */
void device_sums_free(struct device_sums *sums)
{
    if (!sums)
        return;
    pthread_mutex_lock(&sums->lock);
    sums->closing = true;
    atomic_store(&sums->gives_up, true);
    pthread_cond_broadcast(&sums->changed);
    pthread_mutex_unlock(&sums->lock);
    pthread_join(sums->thread, NULL);
    device_settle(sums->device);
    while (sums->first) {
        sums->first->waiter = NULL;
        finish(sums->first, NULL, NULL);
    }
    sums_free(sums);
}
