/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounds, as the owner of the updates drives them, and cancelled waits.
 */
#include <inttypes.h>

#include "base/failpoint.h"
#include "resource/clock_private.h"

void clock_round(struct clock *clock, struct clock_waiter *waiter)
{
    struct error reason = ERROR_INIT;
    pthread_mutex_lock(&clock->lock);
    bool is_driven = clock->under_way;
    for (const struct clock_waiter *w = clock->waiters; w && !is_driven; w = w->next)
        is_driven = w->what == WAIT_ROUND;
    if (clock->failure.code && (clock->under_way || clock->is_lost))
        reason = clock->failure;
    else if (is_driven)
        error_set(&reason, ERR_DATA, "the rounds of the clock '%s' are driven twice", clock->name);
    else {
        error_clear(&clock->failure);
        clock_wait(clock, waiter, WAIT_ROUND);
    }
    clock_unlock(clock);
    if (reason.code)
        waiter->done(waiter, NULL, &reason);
}

int clock_advance(struct clock *clock, int64_t version, struct error *err)
{
    int code = 0;
    if (FAILPOINT("clock.advance"))
        return error_set(err, ERR_IO, "failpoint clock.advance");
    pthread_mutex_lock(&clock->lock);
    if (!clock->under_way || version != clock->version + 1) {
        code = error_set(err, ERR_DATA, "round %" PRId64 " of the clock '%s' is not under way",
                         version, clock->name);
    } else {
        clock->version = version;
        clock->under_way = false;
        vec_each(member, &clock->members) {
            if (member->state == PUSH_CHOSEN) {
                member->state = PUSH_NONE;
                member->last_seq = member->push.seq;
                member->last_counted = true;
                member->clock++;
                member->counted++;
                if (clock->counts && member->worker >= 0 && member->worker < clock->n_counts)
                    atomic_store(&clock->counts[member->worker],
                                 push_count_seal(member->worker, member->counted));
            } else if (member->state == PUSH_WAITS && clock_is_late(clock, member)) {
                clock_decide_late(clock, member);
            }
        }
    }
    clock_unlock(clock);
    return code;
}

void clock_fail(struct clock *clock, const struct error *reason)
{
    pthread_mutex_lock(&clock->lock);
    if (!clock->failure.code)
        clock->failure = *reason;
    clock_unlock(clock);
}

void clock_pause(struct clock *clock, int64_t version, struct clock_waiter *waiter)
{
    pthread_mutex_lock(&clock->lock);
    waiter->id = (struct push_id){.seq = version};
    clock_wait(clock, waiter, WAIT_PAUSE);
    clock_unlock(clock);
}

void clock_resume(struct clock *clock)
{
    pthread_mutex_lock(&clock->lock);
    BUG_ON(!clock->pauses);
    clock->pauses--;
    clock_unlock(clock);
}

void clock_drive_by_worker(struct clock *clock)
{
    pthread_mutex_lock(&clock->lock);
    clock->by_worker = true;
    pthread_mutex_unlock(&clock->lock);
}

void clock_count_in(struct clock *clock, _Atomic uint64_t *counts, int n)
{
    pthread_mutex_lock(&clock->lock);
    clock->counts = counts;
    clock->n_counts = n;
    pthread_mutex_unlock(&clock->lock);
}

void clock_stop_at(struct clock *clock, int64_t version)
{
    pthread_mutex_lock(&clock->lock);
    clock->stop_at = version;
    clock_unlock(clock);
}

bool clock_cancel(struct clock *clock, struct clock_waiter *waiter)
{
    pthread_mutex_lock(&clock->lock);
    struct clock_waiter **at = &clock->waiters;
    while (*at && *at != waiter)
        at = &(*at)->next;
    bool found = *at != NULL;
    if (found)
        *at = waiter->next;
    pthread_mutex_unlock(&clock->lock);
    return found;
}

int64_t clock_version(struct clock *clock)
{
    pthread_mutex_lock(&clock->lock);
    int64_t version = clock->version;
    pthread_mutex_unlock(&clock->lock);
    return version;
}

bool clock_has_failed(struct clock *clock, struct error *reason)
{
    pthread_mutex_lock(&clock->lock);
    bool failed = clock->failure.code && (clock->under_way || clock->is_lost);
    if (failed)
        *reason = clock->failure;
    pthread_mutex_unlock(&clock->lock);
    return failed;
}
