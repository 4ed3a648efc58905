/* SPDX-License-Identifier: Apache-2.0
 *
 * Deadlines of waiters: a thread that is started when a waiter first has one. It looks at most ten
 * times a second, so that starting a wait costs nothing.
 */

#include "base/thread.h"
#include "base/time.h"
#include "resource/clock_private.h"

#define LOOK_SECONDS 0.1

static void *watch_waiters(void *argument)
{
    struct clock *clock = argument;
    pthread_mutex_lock(&clock->lock);
    while (!clock->ends) {
        struct clock_waiter *overdue = NULL;
        double now = time_now();
        for (struct clock_waiter **at = &clock->waiters; *at;) {
            struct clock_waiter *waiter = *at;
            if (waiter->timeout > 0 && now - waiter->since >= waiter->timeout) {
                *at = waiter->next;
                waiter->next = overdue;
                overdue = waiter;
            } else {
                at = &waiter->next;
            }
        }

        while (overdue) {
            struct clock_waiter *next = overdue->next;
            struct error reason = ERROR_INIT;
            struct str missing = STR_INIT;
            clock_print_missing(clock, &missing);
            error_set(&reason, ERR_RETRY, "no answer in %.1f s", overdue->timeout);
            error_waited(&reason, "%s", str_text(&missing));
            str_release(&missing);
            pthread_mutex_unlock(&clock->lock);
            overdue->done(overdue, NULL, &reason);
            pthread_mutex_lock(&clock->lock);
            overdue = next;
        }
        struct timespec until = time_after(LOOK_SECONDS);
        if (!clock->ends)
            pthread_cond_timedwait(&clock->changed, &clock->lock, &until);
    }
    pthread_mutex_unlock(&clock->lock);
    return NULL;
}

void clock_timer_start(struct clock *clock)
{
    if (clock->has_timer)
        return;
    clock->has_timer = !thread_start(&clock->timer, watch_waiters, clock);
}

void clock_timer_end(struct clock *clock)
{
    pthread_mutex_lock(&clock->lock);
    clock->ends = true;
    pthread_cond_broadcast(&clock->changed);
    pthread_mutex_unlock(&clock->lock);
    if (clock->has_timer)
        pthread_join(clock->timer, NULL);
}
