/* SPDX-License-Identifier: Apache-2.0
 *
 * The TEST device's scheduler. Work is done by threads that wait for some, and by one that watches
 * events (device_test_event.c): a random one of the queues whose first piece may run is next. No
 * thread holds a lock of the device while a piece runs.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "lib/device_test_internal.h"

/* splitmix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014). */
uint64_t test_random(struct test_scheduler *s)
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

void test_host_knows(struct test_scheduler *s, const struct test_event *event)
{
    test_clock_join(&s->order.clocks[TEST_HOST], &event->clock);
}

static void is_over(struct test_scheduler *s, struct test_event *event)
{
    struct event_waiter *waiter = event->waiter;
    event->over = true;
    if (!waiter)
        return;
    test_host_knows(s, event); /* the waiter is the host's */
    waiter->next = s->told;
    s->told = waiter;
    s->n_waiting--;
}

static bool may_run(const struct test_line *line)
{
    const struct test_job *first = line->first;
    return first && !line->busy && (!first->waits || first->waits->over) &&
           (!first->is_ready || first->is_ready(first));
}

static bool has_work(const struct test_scheduler *s)
{
    for (int i = 0; i < s->n_lines; i++)
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

#define WORK_NS 1000

static void tick(struct test_line *line, const struct test_job *job)
{
    if (job->waits && line->now < job->waits->time)
        line->now = job->waits->time;
    if (job->run)
        line->now += WORK_NS;
    if (job->marks)
        job->marks->time = line->now;
}

/* Runs the first job; it is over only when freed, as waiters may then free what it used. */
static void run_first(struct test_scheduler *s, struct test_line *line)
{
    struct test_job *job = line->first, *next;
    struct test_event *waits = job->waits, *marks = job->marks;
    if (job->run)
        count_down(s);
    bool runs = job->run && !s->failure.code;
    line->busy = true;
    tick(line, job);
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

bool test_do_some(struct test_scheduler *s)
{
    int first = (int)(test_random(s) % (uint64_t)s->n_lines);
    for (int i = 0; i < s->n_lines; i++) {
        struct test_line *line = &s->lines[(first + i) % s->n_lines];
        if (may_run(line)) {
            run_first(s, line);
            return true;
        }
    }
    return false;
}

/* ---- enqueuing ---- */

void test_wait_for_turn(struct test_scheduler *s)
{
    while (s->is_alone && !pthread_equal(s->alone, pthread_self()))
        pthread_cond_wait(&s->changed, &s->lock);
}

void test_append(struct test_scheduler *s, int line, struct test_job *job)
{
    struct test_line *to = &s->lines[line];
    if (to->last)
        to->last->next = job;
    else
        to->first = job;
    to->last = job;
    pthread_cond_broadcast(&s->changed);
}

/* Enqueues a job; sometimes some work is done at once. */
int test_enqueue(struct test_scheduler *s, int line, struct test_job *job,
                 const struct test_access *accesses, int n, struct error *err)
{
    struct error failure = ERROR_INIT;
    if (test_captured(s))
        return test_capture(test_captured(s), line, job, accesses, n, err);
    pthread_mutex_lock(&s->lock);
    test_wait_for_turn(s);
    if (test_order_use(&s->order, line, accesses, n, &failure))
        fail(s, &failure);
    test_append(s, line, job);
    if (test_random(s) % 4 == 0)
        while (test_do_some(s) && test_random(s) % 2)
            ;
    if (s->failure.code)
        *err = s->failure;
    int code = s->failure.code;
    pthread_mutex_unlock(&s->lock);
    return code;
}

void test_enqueue_free(struct test_scheduler *s, int line, struct test_job *job, const void *data)
{
    struct error failure = ERROR_INIT;
    pthread_mutex_lock(&s->lock);
    test_wait_for_turn(s);
    if (test_order_free(&s->order, line, data, &failure))
        fail(s, &failure);
    test_append(s, line, job);
    pthread_mutex_unlock(&s->lock);
}

void test_allocated(struct test_scheduler *s, const void *data, size_t bytes)
{
    pthread_mutex_lock(&s->lock);
    test_order_alloc(&s->order, data, bytes);
    pthread_mutex_unlock(&s->lock);
}

void test_finish(struct test_scheduler *s)
{
    pthread_mutex_lock(&s->lock);
    while (has_work(s))
        if (!test_do_some(s))
            pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

/* ---- alone ---- */

int test_begin_alone(struct test_scheduler *s, int line, const struct test_access *accesses, int n,
                     struct error *err)
{
    struct error failure = ERROR_INIT;
    if (test_captured(s)) {
        test_capture_refuse(s, "the host waits");
        return error_set(err, ERR_INTERNAL, "the host cannot wait while work is captured");
    }
    pthread_mutex_lock(&s->lock);
    test_wait_for_turn(s);
    if (test_order_use(&s->order, line, accesses, n, &failure))
        fail(s, &failure);
    while (has_work(s) || s->is_alone)
        if (!test_do_some(s))
            pthread_cond_wait(&s->changed, &s->lock);
    s->is_alone = true;
    s->alone = pthread_self();
    if (s->failure.code)
        *err = s->failure;
    int code = s->failure.code;
    pthread_mutex_unlock(&s->lock);
    return code;
}

int test_end_alone(struct test_scheduler *s, int line, const struct test_access *accesses, int n,
                   struct error *err)
{
    if (test_captured(s)) /* nothing has begun */
        return 0;
    pthread_mutex_lock(&s->lock);
    int code = test_order_use(&s->order, line, accesses, n, err);
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

void test_scheduler_init(struct test_scheduler *s, int n_lines)
{
    s->n_lines = n_lines;
    s->failure = error_none();
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
    while (test_do_some(s))
        ;
    pthread_mutex_unlock(&s->lock);
    test_order_release(&s->order);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
}
