/* SPDX-License-Identifier: Apache-2.0
 *
 * The TEST device's scheduler. Work is done by whoever waits for some, and by a thread that watches
 * events for those who want to be told: of the queues whose first piece may be done, a random one
 * is next. Nobody is in a lock of the device while a piece runs.
 */
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "lib/device_test_internal.h"

struct device_event {
    atomic_int holders;
    bool over;
    struct test_clock clock; /* what is over with it */
    struct event_waiter *waiters;
};

/* splitmix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014). */
static uint64_t next_random(struct test_scheduler *s)
{
    uint64_t z = s->random += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static int fail(struct test_scheduler *s, const struct error *failure)
{
    if (!s->failure.code)
        s->failure = *failure;
    return s->failure.code;
}

void test_fail(struct test_scheduler *s, const char *format, ...)
{
    struct error failure = ERROR_INIT;
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    error_set(&failure, ERR_INTERNAL, "%s", text);
    pthread_mutex_lock(&s->lock);
    fail(s, &failure);
    pthread_mutex_unlock(&s->lock);
}

/* ---- doing ---- */

void test_event_free(struct device_event *event)
{
    if (event && atomic_fetch_sub(&event->holders, 1) == 1)
        mem_free(event);
}

static void host_knows(struct test_scheduler *s, const struct device_event *event)
{
    test_clock_join(&s->order.clocks[TEST_HOST], &event->clock);
}

static void is_over(struct test_scheduler *s, struct device_event *event)
{
    event->over = true;
    if (event->waiters) /* who are told, and go on */
        host_knows(s, event);
    while (event->waiters) {
        struct event_waiter *waiter = event->waiters;
        event->waiters = waiter->next;
        waiter->next = s->told;
        s->told = waiter;
        s->n_waiting--;
    }
}

static bool may_run(const struct test_line *line)
{
    return line->first && !line->busy && (!line->first->waits || line->first->waits->over);
}

static bool has_work(const struct test_scheduler *s)
{
    for (int i = 0; i < N_QUEUES; i++)
        if (s->lines[i].first || s->lines[i].busy)
            return true;
    return false;
}

static void count_down(struct test_scheduler *s)
{
    struct error failure = ERROR_INIT;
    if (s->until_failure > 0 && --s->until_failure == 0) {
        error_set(&failure, ERR_OS, "the TEST device has failed, as it was asked to");
        fail(s, &failure);
    }
}

/* It is over when nothing is left of it: whoever waited may take away what it used. */
static void run_first(struct test_scheduler *s, struct test_line *line)
{
    struct test_job *job = line->first, *next;
    struct device_event *waits = job->waits, *marks = job->marks;
    if (job->run)
        count_down(s);
    bool runs = job->run && !s->failure.code;
    line->busy = true;
    pthread_mutex_unlock(&s->lock);
    if (runs)
        job->run(job);
    pthread_mutex_lock(&s->lock);
    next = job->next;
    if (!next)
        line->last = NULL;
    line->first = next;
    pthread_mutex_unlock(&s->lock);
    job->free(job);
    pthread_mutex_lock(&s->lock);
    line->busy = false;
    if (marks)
        is_over(s, marks);
    pthread_cond_broadcast(&s->changed);
    test_event_free(waits);
    test_event_free(marks);
}

/* False: there is nothing that could be done now. */
static bool do_some(struct test_scheduler *s)
{
    int first = (int)(next_random(s) % N_QUEUES);
    for (int i = 0; i < N_QUEUES; i++) {
        struct test_line *line = &s->lines[(first + i) % N_QUEUES];
        if (may_run(line)) {
            run_first(s, line);
            return true;
        }
    }
    return false;
}

/* ---- enqueuing ---- */

static void plain_free(struct test_job *job)
{
    mem_free(job);
}

static void wait_for_turn(struct test_scheduler *s)
{
    while (s->is_alone && !pthread_equal(s->alone, pthread_self()))
        pthread_cond_wait(&s->changed, &s->lock);
}

static void append(struct test_scheduler *s, enum queue_kind queue, struct test_job *job)
{
    struct test_line *line = &s->lines[queue];
    if (line->last)
        line->last->next = job;
    else
        line->first = job;
    line->last = job;
    pthread_cond_broadcast(&s->changed);
}

/* Sometimes work is done at once. */
int test_enqueue(struct test_scheduler *s, enum queue_kind queue, struct test_job *job,
                 const struct test_access *accesses, int n, struct error *err)
{
    struct error failure = ERROR_INIT;
    pthread_mutex_lock(&s->lock);
    wait_for_turn(s);
    if (test_order_use(&s->order, queue, accesses, n, &failure))
        fail(s, &failure);
    append(s, queue, job);
    if (next_random(s) % 4 == 0)
        while (do_some(s) && next_random(s) % 2)
            ;
    if (s->failure.code)
        *err = s->failure;
    int code = s->failure.code;
    pthread_mutex_unlock(&s->lock);
    return code;
}

void test_enqueue_free(struct test_scheduler *s, struct test_job *job, const void *data)
{
    struct error failure = ERROR_INIT;
    pthread_mutex_lock(&s->lock);
    wait_for_turn(s);
    if (test_order_free(&s->order, data, &failure))
        fail(s, &failure);
    append(s, QUEUE_COMPUTE, job);
    pthread_mutex_unlock(&s->lock);
}

void test_allocated(struct test_scheduler *s, const void *data, size_t bytes)
{
    pthread_mutex_lock(&s->lock);
    test_order_alloc(&s->order, data, bytes);
    pthread_mutex_unlock(&s->lock);
}

/* ---- events ---- */

struct device_event *test_record(struct test_scheduler *s, enum queue_kind queue)
{
    struct device_event *event = mem_alloc(sizeof *event);
    struct test_job *job = mem_alloc(sizeof *job);
    atomic_init(&event->holders, 2);
    *job = (struct test_job){.free = plain_free, .marks = event};
    pthread_mutex_lock(&s->lock);
    wait_for_turn(s);
    event->clock = s->order.clocks[queue];
    append(s, queue, job);
    pthread_mutex_unlock(&s->lock);
    return event;
}

void test_wait(struct test_scheduler *s, enum queue_kind queue, struct device_event *event)
{
    struct test_job *job = mem_alloc(sizeof *job);
    *job = (struct test_job){.free = plain_free, .waits = event};
    atomic_fetch_add(&event->holders, 1);
    pthread_mutex_lock(&s->lock);
    wait_for_turn(s);
    test_clock_join(&s->order.clocks[queue], &event->clock);
    append(s, queue, job);
    pthread_mutex_unlock(&s->lock);
}

bool test_query(struct test_scheduler *s, struct device_event *event)
{
    pthread_mutex_lock(&s->lock);
    if (!event->over)
        do_some(s);
    bool over = event->over;
    if (over)
        host_knows(s, event);
    pthread_mutex_unlock(&s->lock);
    return over;
}

int test_block(struct test_scheduler *s, struct device_event *event, struct error *err)
{
    pthread_mutex_lock(&s->lock);
    while (!event->over)
        if (!do_some(s))
            pthread_cond_wait(&s->changed, &s->lock);
    host_knows(s, event);
    if (s->failure.code)
        *err = s->failure;
    int code = s->failure.code;
    pthread_mutex_unlock(&s->lock);
    return code;
}

/* ---- the watcher ---- */

static void tell(struct test_scheduler *s)
{
    struct event_waiter *waiter = s->told;
    struct error failure = s->failure;
    s->told = waiter->next;
    pthread_mutex_unlock(&s->lock);
    waiter->done(waiter, failure.code ? &failure : NULL);
    pthread_mutex_lock(&s->lock);
}

/* It is in no hurry. */
static void hesitate(struct test_scheduler *s)
{
    if (next_random(s) % 4)
        return;
    pthread_mutex_unlock(&s->lock);
    sched_yield();
    pthread_mutex_lock(&s->lock);
}

static void *watch(void *argument)
{
    struct test_scheduler *s = argument;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        if (s->told)
            tell(s);
        else if (s->closing && !s->n_waiting)
            break;
        else if (!s->n_waiting || !do_some(s))
            pthread_cond_wait(&s->changed, &s->lock);
        else
            hesitate(s);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

void test_notify(struct test_scheduler *s, struct device_event *event, struct event_waiter *waiter)
{
    pthread_mutex_lock(&s->lock);
    if (!s->watched)
        BUG_ON(pthread_create(&s->watcher, NULL, watch, s));
    s->watched = true;
    if (event->over)
        host_knows(s, event);
    waiter->next = event->over ? s->told : event->waiters;
    *(event->over ? &s->told : &event->waiters) = waiter;
    s->n_waiting += !event->over;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* ---- alone ---- */

int test_begin_alone(struct test_scheduler *s, const struct test_access *accesses, int n,
                     struct error *err)
{
    struct error failure = ERROR_INIT;
    pthread_mutex_lock(&s->lock);
    wait_for_turn(s);
    if (test_order_use(&s->order, QUEUE_COMPUTE, accesses, n, &failure))
        fail(s, &failure);
    while (has_work(s) || s->is_alone)
        if (!do_some(s))
            pthread_cond_wait(&s->changed, &s->lock);
    s->is_alone = true;
    s->alone = pthread_self();
    if (s->failure.code)
        *err = s->failure;
    int code = s->failure.code;
    pthread_mutex_unlock(&s->lock);
    return code;
}

int test_end_alone(struct test_scheduler *s, const struct test_access *accesses, int n,
                   struct error *err)
{
    pthread_mutex_lock(&s->lock);
    int code = test_order_use(&s->order, QUEUE_COMPUTE, accesses, n, err);
    if (code)
        fail(s, err);
    s->is_alone = false;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return code;
}

/* ---- the whole ---- */

static long number_from(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtol(text, NULL, 10) : otherwise;
}

void test_scheduler_init(struct test_scheduler *s)
{
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->random = (uint64_t)number_from("TF_TEST_DEVICE_SEED", 1);
    s->until_failure = number_from("TF_TEST_DEVICE_FAIL", -1);
}

void test_scheduler_release(struct test_scheduler *s)
{
    pthread_mutex_lock(&s->lock);
    s->closing = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (s->watched)
        pthread_join(s->watcher, NULL);
    pthread_mutex_lock(&s->lock);
    while (do_some(s))
        ;
    pthread_mutex_unlock(&s->lock);
    test_order_release(&s->order);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
}
