/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/loop/loop_private.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/time.h"
#include "base/vec.h"
#include "transport/loop/heartbeat.h"

#define LOOKS_WITHOUT_ASKING 8
#define SOCKETS_POLLED 4 /* with more it is cheaper to ask the system which are readable */

struct loop_event {
    struct event *event;
    struct loop *loop;
    void (*call)(void *context);
    void *context;
};

/* Its address identifies the thread. */
static _Thread_local char this_thread;

/* ---- the duration of rounds: during one the loop serves nothing else ---- */

static void set_round(struct loop *loop, int64_t now, int64_t next)
{
    int64_t began = atomic_load_explicit(&loop->round, memory_order_relaxed);
    if (began && now - began > atomic_load_explicit(&loop->longest, memory_order_relaxed))
        atomic_store_explicit(&loop->longest, now - began, memory_order_relaxed);
    atomic_store_explicit(&loop->round, next, memory_order_relaxed);
}

void loop_begin_round(struct loop *loop)
{
    int64_t now = time_now_ns();
    set_round(loop, now, now);
}

static void end_round(struct loop *loop)
{
    set_round(loop, time_now_ns(), 0);
}

double loop_stillness(const struct loop *loop)
{
    int64_t began = atomic_load_explicit(&loop->round, memory_order_relaxed);
    int64_t passed = began ? time_now_ns() - began : 0;
    return passed > 0 ? 1e-9 * (double)passed : 0;
}

double loop_longest_stillness(const struct loop *loop)
{
    double longest = 1e-9 * (double)atomic_load_explicit(&loop->longest, memory_order_relaxed);
    double now = loop_stillness(loop);
    return now > longest ? now : longest;
}

/* ---- the loop ---- */

static void woken(void *context)
{
    struct loop *loop = context;
    uint64_t count;
    (void)!read(loop->wake_fd, &count, sizeof count); /* nothing: another reason woke it */
}

struct loop *loop_new(struct error *err)
{
    struct loop *loop = mem_alloc(sizeof *loop);
    pthread_mutex_init(&loop->lock, NULL);
    busy_poll_init(&loop->busy_poll);
    struct event_config *config = event_config_new();
    if (config) {
        event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
        loop->base = event_base_new_with_config(config);
        event_config_free(config);
    }
    loop->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (!loop->base || loop->wake_fd < 0) {
        error_set_errno(err, ERR_OS, "an event loop");
        loop_free(loop);
        return NULL;
    }
    loop->wake = loop_watch_new(loop, loop->wake_fd, woken, loop);
    return loop;
}

void loop_free(struct loop *loop)
{
    if (!loop)
        return;
    BUG_ON(atomic_load(&loop->runner));
    heartbeat_free(loop->heartbeat);
    loop_event_free(loop->wake);
    if (loop->base)
        event_base_free(loop->base);
    if (loop->wake_fd >= 0)
        close(loop->wake_fd);
    busy_poll_release(&loop->busy_poll);
    vec_release(&loop->calls);
    vec_release(&loop->running);
    pthread_mutex_destroy(&loop->lock);
    mem_free(loop);
}

void loop_add_poller(struct loop *loop, struct loop_poller *poller)
{
    poller->next = loop->pollers;
    loop->pollers = poller;
    loop->n_sockets += poller->is_socket;
}

void loop_remove_poller(struct loop *loop, struct loop_poller *poller)
{
    for (struct loop_poller **at = &loop->pollers; *at; at = &(*at)->next) {
        if (*at == poller) {
            *at = poller->next;
            loop->n_sockets -= poller->is_socket;
            if (loop->cursor == poller)
                loop->cursor = poller->next;
            return;
        }
    }
}

static void wake(struct loop *loop)
{
    uint64_t one = 1;
    if (atomic_load(&loop->asleep) && write(loop->wake_fd, &one, sizeof one) < 0)
        BUG_ON(errno != EAGAIN); /* full: the loop wakes anyway */
}

void loop_post(struct loop *loop, void (*call)(void *argument), void *argument)
{
    pthread_mutex_lock(&loop->lock);
    vec_push(&loop->calls, ((struct loop_call){call, argument}));
    atomic_store(&loop->has_calls, true);
    wake(loop); /* with the lock, as the call may end the loop's lifetime */
    pthread_mutex_unlock(&loop->lock);
}

void loop_stop(struct loop *loop)
{
    atomic_store(&loop->stopped, true);
    wake(loop);
}

bool loop_is_current(const struct loop *loop)
{
    return atomic_load(&loop->runner) == &this_thread;
}

bool loop_is_elsewhere(const struct loop *loop)
{
    const void *runner = atomic_load(&loop->runner);
    return runner && runner != &this_thread;
}

/* Runs the calls posted so far; calls that these post run in the next round. */
static bool run_calls(struct loop *loop)
{
    if (!atomic_load_explicit(&loop->has_calls, memory_order_relaxed))
        return false;
    pthread_mutex_lock(&loop->lock);
    loop_calls calls = loop->calls;
    loop->calls = loop->running;
    loop->running = calls;
    atomic_store(&loop->has_calls, false);
    pthread_mutex_unlock(&loop->lock);
    for (size_t i = 0; i < loop->running.n; i++)
        loop->running.items[i].call(loop->running.items[i].argument);
    loop->running.n = 0;
    return true;
}

void loop_run_posted(struct loop *loop)
{
    while (run_calls(loop))
        ;
}

static bool arm_pollers(struct loop *loop, bool sleeping)
{
    bool found = false;
    for (struct loop_poller *poller = loop->pollers; poller; poller = poller->next)
        found |= poller->arm && poller->arm(poller->context, sleeping);
    return found;
}

/* Polls once without sleeping; returns whether there was an event. Links are read directly: that
 * costs less than asking whether they are readable, and in shared memory not even a system call. So
 * all descriptors are asked only now and then. EVLOOP_ONCE, or libevent would continue as long as a
 * descriptor is ready. */
static bool poll_now(struct loop *loop, int *failed)
{
    loop->worked = false;
    *failed = 0;
    loop_begin_round(loop);
    bool called = run_calls(loop), polled = false, sockets = loop->n_sockets <= SOCKETS_POLLED;
    /* A poller may remove itself and others. */
    loop->cursor = loop->pollers;
    while (loop->cursor) {
        struct loop_poller *poller = loop->cursor;
        loop->cursor = poller->next;
        if (!poller->is_socket || sockets)
            polled |= poller->poll(poller->context);
    }
    /* The pollers see everything that open links may receive, so for a short wait they suffice. */
    if (loop->pollers && loop->n_sockets <= SOCKETS_POLLED && !called &&
        ++loop->unasked < LOOKS_WITHOUT_ASKING)
        return polled;
    loop->unasked = 0;
    *failed = event_base_loop(loop->base, EVLOOP_NONBLOCK | EVLOOP_ONCE) < 0;
    return called | polled | loop->worked;
}

/* Waits until something happened: polls, and sleeps if that found nothing. */
static int wait_once(struct loop *loop)
{
    int failed;
    if (poll_now(loop, &failed) || failed)
        return failed;
    double start = time_now();
    if (busy_poll_is_worth(&loop->busy_poll, start)) {
        double end = start + loop->busy_poll.limit;
        bool found = false;
        while (!found && !failed && time_now() < end)
            found = poll_now(loop, &failed) || atomic_load(&loop->stopped);
        busy_poll_ended(&loop->busy_poll, found);
        if (found || failed)
            return failed;
    }
    atomic_store(&loop->asleep, true);
    bool found = arm_pollers(loop, true);
    end_round(loop);
    if (!found && !atomic_load(&loop->has_calls) && !atomic_load(&loop->stopped))
        failed = event_base_loop(loop->base, EVLOOP_ONCE) < 0;
    atomic_store(&loop->asleep, false);
    arm_pollers(loop, false);
    return failed;
}

static void enter(struct loop *loop)
{
    const void *none = NULL;
    BUG_ON(!atomic_compare_exchange_strong(&loop->runner, &none, &this_thread));
}

static void leave_loop(struct loop *loop)
{
    run_calls(loop); /* run calls posted by the last round, such as writes of links, without delay
                      */
    end_round(loop);
    atomic_store(&loop->runner, NULL);
}

int loop_run(struct loop *loop, struct error *err)
{
    int failed = 0;
    enter(loop);
    while (!failed && !atomic_load(&loop->stopped))
        failed = wait_once(loop);
    atomic_store(&loop->stopped, false);
    leave_loop(loop);
    return failed ? error_set_errno(err, ERR_OS, "waiting for events") : 0;
}

static void passed(void *context)
{
    *(bool *)context = true;
}

bool loop_run_until(struct loop *loop, bool (*until)(void *context), void *context, double timeout)
{
    bool late = false, held = false;
    if (until && until(context))
        return true;
    struct loop_event *timer = timeout >= 0 ? loop_timer_new(loop, passed, &late) : NULL;
    if (timer)
        loop_timer_set(timer, timeout);
    enter(loop);
    while (!(held = until && until(context)) && !late && !atomic_load(&loop->stopped))
        if (wait_once(loop))
            break;
    if (!held && !late)
        atomic_store(&loop->stopped, false);
    leave_loop(loop);
    loop_event_free(timer);
    return held;
}

static void fired(evutil_socket_t fd, short what, void *context)
{
    struct loop_event *event = context;
    (void)fd, (void)what;
    loop_worked(event->loop);
    event->call(event->context);
}

/* A timer has no descriptor. */
static struct loop_event *event_of(struct loop *loop, int fd, void (*call)(void *context),
                                   void *context)
{
    struct loop_event *event = mem_alloc(sizeof *event);
    bool watches = fd >= 0;
    *event = (struct loop_event){.loop = loop, .call = call, .context = context};
    event->event = event_new(loop->base, fd, watches ? EV_READ | EV_PERSIST : 0, fired, event);
    if (!event->event || (watches && event_add(event->event, NULL)))
        mem_exhausted(0);
    return event;
}

struct loop_event *loop_timer_new(struct loop *loop, void (*call)(void *context), void *context)
{
    return event_of(loop, -1, call, context);
}

struct loop_event *loop_watch_new(struct loop *loop, int fd, void (*call)(void *context),
                                  void *context)
{
    return event_of(loop, fd, call, context);
}

void loop_timer_set(struct loop_event *timer, double seconds)
{
    struct timeval after = {(time_t)seconds,
                            (suseconds_t)((seconds - (double)(time_t)seconds) * 1e6)};
    if (seconds < 0)
        evtimer_del(timer->event);
    else
        evtimer_add(timer->event, &after);
}

void loop_event_free(struct loop_event *event)
{
    if (!event)
        return;
    event_free(event->event);
    mem_free(event);
}
