/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums that the devices of all members add among themselves (exec/device/communicator.h), over
 * connections that their library finds. The library requires all members to ask for the same sums
 * in the same order, and waits for ever for a member that does not. So members agree over their
 * links before each sum:
 *
 * 1. When the values are computed, and no kernel has set the error flag, the member tells the
 *    others of the round, as of any other; its contribution is a number, and rank 0's counts.
 * 2. A thread of the group enqueues the sums of running rounds in the order of their numbers. They
 *    end when the device has added. Calls of the library may wait for other members, and the loop
 *    must not block. The thread also checks whether the library has lost a member.
 *
 * If a member has left, another round, of the values copied to host memory, replaces the settled
 * one. If a member is lost, or a call is cancelled that others continue, the communicator is
 * aborted, so that enqueued work ends; after that all calls fail.
 */
#include "base/container_of.h"
#include "base/memory.h"
#include "base/thread.h"
#include "base/time.h"
#include "exec/device/deferred.h"
#include "exec/device/queue.h"
#include "transport/collective/collective_round.h"

#define LOOK_SECONDS 0.1 /* between checks whether the library has lost a member */

/* A round's sum on its device. The round is held while a callback of the device is pending. */
struct device_sum {
    struct process_group *group;
    struct collective_round *round;
    bool is_enqueued;
    struct copy_out copy; /* of the error flag alone; later of the values, too, if need be */
    struct event_waiter over;
};

struct device_sums {
    struct process_group *group;
    struct device *device;
    struct communicator_place place;
    pthread_t thread;
    atomic_bool gives_up;
    struct communicator *communicator; /* the thread's only */
    bool has_joined;                   /* or failed to; the loop's thread only */
    /* With the group's lock: */
    pthread_cond_t changed;
    bool closing;
    struct error failed;  /* set: nothing is added from now on */
    uint64_t given, next; /* numbers: the last given by this member; the next to enqueue */
    VEC(uint64_t) passed; /* numbers from `next` on, of rounds over without being enqueued */
};

void device_sums_give_up(struct device_sums *sums, const struct error *why)
{
    if (!sums->failed.code)
        sums->failed = *why;
    atomic_store(&sums->gives_up, true);
    pthread_cond_broadcast(&sums->changed);
}

/* Gives up all sums, as the library has failed. */
static void lose(struct device_sums *sums, const struct error *why)
{
    pthread_mutex_lock(&sums->group->lock);
    device_sums_give_up(sums, why);
    pthread_mutex_unlock(&sums->group->lock);
}

/* ---- a round until it runs ---- */

void device_sum_new(struct process_group *group, struct collective_round *r)
{
    r->n_missing = 1; /* until the device has added */
    r->on_device = mem_alloc(sizeof *r->on_device);
    *r->on_device = (struct device_sum){.group = group, .round = r, .copy.at = r->call.at};
}

void device_sum_free(struct device_sum *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->copy.n; i++)
        tensor_release(&s->copy.to[i]);
    mem_free(s->copy.to);
    s->copy.n = 0; /* the values are the round's */
    copy_out_release(&s->copy);
    mem_free(s);
}

static void start_copy(struct device_sum *s,
                       void (*done)(struct copy_out *copy, const struct error *failure))
{
    struct error err = ERROR_INIT;
    s->copy.done = done;
    if (copy_out_enqueue(&s->copy, s->round->call.host_pool, &err))
        done(&s->copy, &err);
    else
        copy_out_notify(&s->copy);
}

/* The values are computed. */
static void computed(struct copy_out *copy, const struct error *failure)
{
    struct device_sum *s = CONTAINER_OF(copy, struct device_sum, copy);
    struct process_group *group = s->group;
    struct error err = failure ? *failure : error_none();
    pthread_mutex_lock(&group->lock);
    if (!err.code) /* else nobody is told */
        s->round->contributions[group->interface.rank].number = ++group->sums->given;
    pthread_mutex_unlock(&group->lock);
    round_tell(group, s->round, &err);
}

void device_sum_await(struct device_sum *s)
{
    start_copy(s, computed);
}

static void copied(struct copy_out *copy, const struct error *failure)
{
    struct device_sum *s = CONTAINER_OF(copy, struct device_sum, copy);
    struct collective_round *r = s->round, *other = NULL;
    struct process_group *group = s->group;
    struct error err = ERROR_INIT;
    struct str name = STR_INIT;
    str_printf(&name, "%s/host", r->name);
    const struct collective_call call = {
        .key = {str_text(&name), r->call.key.step, r->call.key.iteration},
        .values = copy->to,
        .kinds = r->kinds,
        .n = r->call.n,
        .group = r->call.group,
        .with_leaving = r->call.with_leaving,
        .priority = r->call.priority,
        .yields = true};
    pthread_mutex_lock(&group->lock);
    struct collective_waiter *waiter = round_end(group, r);
    if (waiter && !failure)
        other = round_call(group, &call, waiter, &err);
    pthread_mutex_unlock(&group->lock);
    if (other)
        round_tell(group, other, &err);
    else if (waiter)
        waiter->done(waiter, NULL, failure);
    str_release(&name);
    round_drop(group, r);
}

void device_sum_to_host(struct device_sum *s)
{
    pthread_mutex_lock(&s->group->lock);
    s->round->holders++;
    pthread_mutex_unlock(&s->group->lock);
    s->copy.from = s->round->own;
    s->copy.to = mem_array((size_t)s->round->call.n + 1, sizeof *s->copy.to);
    s->copy.n = s->round->call.n;
    start_copy(s, copied);
}

/* ---- the thread: joins the others, and enqueues the sums of running rounds ---- */

/* Called when an enqueued sum is over. */
static void added(struct event_waiter *over, const struct error *failure)
{
    struct device_sum *s = CONTAINER_OF(over, struct device_sum, over);
    struct process_group *group = s->group;
    pthread_mutex_lock(&group->lock);
    struct error why = failure ? *failure : group->sums->failed;
    s->round->n_missing = 0;
    pthread_mutex_unlock(&group->lock);
    if (why.code)
        round_lose(group, s->round, &why);
    else
        round_go_on(group, s->round);
    round_drop(group, s->round);
}

static int add_device_value(struct device_sum *s, int i, struct error *err)
{
    struct device_sums *sums = s->group->sums;
    const struct tensor *value = &s->round->own[i];
    struct tensor *result = &s->round->results[i];
    if (s->round->call.yields && buffer_is_sole(value->buffer)) {
        tensor_share(result, value);
    } else {
        struct buffer *buffer = pool_alloc(s->round->call.pool, tensor_bytes(value));
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
                                         .mean = collective_divides(s->round->kinds[i])};
    return sum.count
               ? sums->device->communicators->add(sums->communicator, &sum, &sums->gives_up, err)
               : 0;
}

/* Waits for the end even after a failure: enqueued work must end before its memory is used
 * again. */
static void enqueue_sum(struct device_sum *s)
{
    struct device *device = s->group->sums->device;
    struct error err = ERROR_INIT;
    device->queue->wait(device, QUEUE_COMPUTE, s->copy.at.ready);
    for (int i = 0; i < s->round->call.n && !err.code; i++)
        add_device_value(s, i, &err);
    if (err.code)
        lose(s->group->sums, &err);
    s->over.done = added;
    queue_notify_end(device, QUEUE_COMPUTE, &s->over);
}

void device_sums_look_at(struct device_sums *sums, const struct collective_round *r)
{
    uint64_t number = r->contributions[0].number;
    bool is_over = r->state == ROUND_OVER;
    if (is_over && (number < sums->next || (r->on_device && r->on_device->is_enqueued)))
        return;
    if (is_over)
        vec_push(&sums->passed, number);
    pthread_cond_broadcast(&sums->changed);
}

/* Returns the next sum, its round held, or NULL after a while; *closing: there will be none. Once
 * sums are given up none is enqueued: the others may wait in the communicator for a different
 * sum. */
static struct device_sum *wait_for_sum(struct device_sums *sums, bool *closing)
{
    const struct timespec until = time_after(LOOK_SECONDS);
    struct process_group *group = sums->group;
    struct collective_round *r;
    int failed = 0;
    pthread_mutex_lock(&group->lock);
    for (;;) {
        bool gives_up = atomic_load(&sums->gives_up);
        for (size_t i = 0; i < sums->passed.n;) /* skip the numbers of rounds that are over */
            if (sums->passed.items[i] == sums->next) {
                sums->passed.items[i] = vec_pop(&sums->passed);
                sums->next++;
                i = 0;
            } else {
                i++;
            }
        r = group->rounds;
        while (r && !(r->on_device && r->state == ROUND_RUNNING && !r->on_device->is_enqueued &&
                      (gives_up || r->contributions[0].number == sums->next)))
            r = r->next;
        if (r || failed || sums->closing || (gives_up && sums->communicator))
            break;
        failed = pthread_cond_timedwait(&sums->changed, &group->lock, &until);
    }
    if (r) {
        r->on_device->is_enqueued = !atomic_load(&sums->gives_up);
        r->holders++;
        sums->next++;
    }
    *closing = sums->closing;
    pthread_mutex_unlock(&group->lock);
    return r ? r->on_device : NULL;
}

static void look_after(struct device_sums *sums)
{
    struct error err = ERROR_INIT;
    const struct communicator_functions *calls = sums->device->communicators;
    if (!sums->communicator)
        return;
    if (!atomic_load(&sums->gives_up) && calls->check(sums->communicator, &err))
        lose(sums, &err);
    if (!atomic_load(&sums->gives_up))
        return;
    calls->abort(sums->communicator);
    calls->free(sums->communicator);
    sums->communicator = NULL;
}

static void end_join(void *context)
{
    ((struct device_sums *)context)->has_joined = true;
}

static void *run_sums(void *argument)
{
    struct device_sums *sums = argument;
    struct device *device = sums->device;
    struct error err = ERROR_INIT;
    thread_enter_device(device, 1);
    sums->communicator = device->communicators->join(device, &sums->place, &sums->gives_up, &err);
    pthread_mutex_lock(&sums->group->lock);
    if (!sums->communicator)
        device_sums_give_up(sums, &err);
    bool closing = sums->closing;
    pthread_mutex_unlock(&sums->group->lock);
    loop_post(conns_loop(sums->group->conns), end_join, sums);
    while (!closing) {
        struct device_sum *s = wait_for_sum(sums, &closing);
        if (s && s->is_enqueued) {
            enqueue_sum(s);
        } else if (s) {
            round_lose(s->group, s->round, &sums->failed);
            round_drop(s->group, s->round);
        }
        look_after(sums);
    }
    atomic_store(&sums->gives_up, true);
    look_after(sums);
    return NULL;
}

/* ---- for the group ---- */

static bool is_joined(void *context)
{
    return ((const struct device_sums *)context)->has_joined;
}

int collective_links_add_on(struct collective *collective, struct device *device,
                            const struct communicator_place *place, struct error *err)
{
    struct process_group *group = (struct process_group *)collective;
    struct device_sums *sums = mem_alloc(sizeof *sums);
    *sums = (struct device_sums){.group = group, .device = device, .place = *place, .next = 1};
    sums->failed = error_none();
    time_cond_init(&sums->changed);
    if (thread_start(&sums->thread, run_sums, sums)) {
        pthread_cond_destroy(&sums->changed);
        mem_free(sums);
        return error_set(err, ERR_OS, "no thread for sums on devices");
    }
    pthread_mutex_lock(&group->lock);
    group->sums = sums;
    if (group->failed.code)
        device_sums_give_up(sums, &group->failed);
    pthread_mutex_unlock(&group->lock);
    while (!loop_run_until(conns_loop(group->conns), is_joined, sums, -1))
        ;
    pthread_mutex_lock(&sums->group->lock);
    if (sums->failed.code)
        *err = sums->failed;
    pthread_mutex_unlock(&sums->group->lock);
    collective->adds_on = err->code ? NULL : device;
    return err->code;
}

/* No calls are made any more; device_settle ends all enqueued work. */
void device_sums_free(struct device_sums *sums)
{
    if (!sums)
        return;
    pthread_mutex_lock(&sums->group->lock);
    sums->closing = true;
    atomic_store(&sums->gives_up, true);
    if (!sums->failed.code)
        error_set(&sums->failed, ERR_CANCELLED, "the group of the devices ends");
    pthread_cond_broadcast(&sums->changed);
    pthread_mutex_unlock(&sums->group->lock);
    pthread_join(sums->thread, NULL);
    device_settle(sums->device);
    pthread_cond_destroy(&sums->changed);
    vec_release(&sums->passed);
    sums->group->sums = NULL; /* remaining rounds have no number */
    mem_free(sums);
}
