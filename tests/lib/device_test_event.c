/* SPDX-License-Identifier: Apache-2.0
 *
 * The TEST device's events, and the thread that watches them and tells their waiters.
 */
#include <sched.h>
#include <time.h>

#include "base/memory.h"
#include "lib/device_test_internal.h"

void test_event_free(struct test_event *event)
{
    if (event && atomic_fetch_sub(&event->holders, 1) == 1)
        mem_free(event);
}

static void plain_free(struct test_job *job)
{
    mem_free(job);
}

struct test_event *test_record(struct test_scheduler *s, int line)
{
    struct test_event *event = mem_alloc(sizeof *event);
    struct test_job *job = mem_alloc(sizeof *job);
    atomic_init(&event->holders, 2);
    *job = (struct test_job){.free = plain_free, .marks = event};
    if (test_captured(s)) {
        test_capture_mark(test_captured(s), line, job);
        return event;
    }
    pthread_mutex_lock(&s->lock);
    test_wait_for_turn(s);
    event->clock = s->order.clocks[line];
    test_append(s, line, job);
    pthread_mutex_unlock(&s->lock);
    return event;
}

/* Pauses, so that others may enqueue work between a wait and the work that it is for. */
static void pause_between(void)
{
    struct timespec some = {.tv_nsec = 50000};
    nanosleep(&some, NULL);
}

void test_wait(struct test_scheduler *s, int line, struct test_event *event)
{
    struct test_job *job = mem_alloc(sizeof *job);
    *job = (struct test_job){.free = plain_free, .waits = event};
    atomic_fetch_add(&event->holders, 1);
    if (test_captured(s)) {
        test_capture_wait(test_captured(s), line, job);
        return;
    }
    pthread_mutex_lock(&s->lock);
    test_wait_for_turn(s);
    test_clock_join(&s->order.clocks[line], &event->clock);
    test_append(s, line, job);
    bool pauses = test_random(s) % 16 == 0;
    pthread_mutex_unlock(&s->lock);
    if (pauses)
        pause_between();
}

int64_t test_time(struct test_scheduler *s, const struct test_event *event)
{
    pthread_mutex_lock(&s->lock);
    BUG_ON(!event->over);
    int64_t time = event->time;
    pthread_mutex_unlock(&s->lock);
    return time;
}

bool test_query(struct test_scheduler *s, struct test_event *event)
{
    pthread_mutex_lock(&s->lock);
    if (!event->over)
        test_do_some(s);
    bool over = event->over;
    if (over)
        test_host_knows(s, event);
    pthread_mutex_unlock(&s->lock);
    return over;
}

int test_block(struct test_scheduler *s, struct test_event *event, struct error *err)
{
    pthread_mutex_lock(&s->lock);
    while (!event->over)
        if (!test_do_some(s))
            pthread_cond_wait(&s->changed, &s->lock);
    test_host_knows(s, event);
    if (s->failure.code)
        *err = s->failure;
    int code = s->failure.code;
    pthread_mutex_unlock(&s->lock);
    return code;
}

/* ---- the watcher ---- */

/* Tells the waiter that asked first, which is the last of the list. */
static void tell(struct test_scheduler *s)
{
    struct event_waiter **last = &s->told;
    struct error failure = s->failure;
    while ((*last)->next)
        last = &(*last)->next;
    struct event_waiter *waiter = *last;
    *last = NULL;
    pthread_mutex_unlock(&s->lock);
    waiter->done(waiter, failure.code ? &failure : NULL);
    pthread_mutex_lock(&s->lock);
}

/* Pauses at times. The more often it has paused since it last had nothing to do, the rarer it
 * pauses again: beside other programs each pause lasts as long as their turns, and a long loop has
 * hundreds of thousands of pieces. */
static void hesitate(struct test_scheduler *s, unsigned *n)
{
    if (test_random(s) % (4 + *n))
        return;
    ++*n;
    pthread_mutex_unlock(&s->lock);
    sched_yield();
    pthread_mutex_lock(&s->lock);
}

static void *watch(void *argument)
{
    struct test_scheduler *s = argument;
    unsigned hesitations = 0;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        if (s->told) {
            tell(s);
        } else if (s->closing && !s->n_waiting) {
            break;
        } else if (!s->n_waiting || !test_do_some(s)) {
            hesitations = 0;
            pthread_cond_wait(&s->changed, &s->lock);
        } else {
            hesitate(s, &hesitations);
        }
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

void test_notify(struct test_scheduler *s, struct test_event *event, struct event_waiter *waiter)
{
    bool over = test_captured(s);
    test_capture_refuse(s, "something is to be told");
    pthread_mutex_lock(&s->lock);
    if (!s->watched)
        BUG_ON(pthread_create(&s->watcher, NULL, watch, s));
    s->watched = true;
    over = over || event->over;
    if (over) {
        test_host_knows(s, event);
        waiter->next = s->told;
        s->told = waiter;
    } else {
        event->waiter = waiter;
        s->n_waiting++;
    }
    test_event_free(event); /* its job holds it until it is over */
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}
