/* SPDX-License-Identifier: Apache-2.0
 *
 * Private state of workers: when it is asked for, and that none is lost.
 *
 * A worker gives its state between the reply to its push and its next step, while none of its
 * pushes is under way. When all have given it, each state on the shards is as of its worker's last
 * decided push. A checkpoint of that moment leaves out waiting pushes, as workers repeat them.
 */
#include <inttypes.h>

#include "resource/clock_private.h"

void clock_keep_states(struct clock *clock)
{
    pthread_mutex_lock(&clock->lock);
    if (!clock->keeps)
        clock_forget_waiting(clock);
    clock->keeps = true;
    clock_unlock(clock);
}

/* ---- asking for states ---- */

void clock_update_asks(struct clock *clock)
{
    bool stops = clock->stop_at && clock->version >= clock->stop_at;
    bool asks = clock->keeps && (clock->askers || stops);
    if (asks && !clock->asks) {
        bool is_new = clock->version > clock->seen_version; /* no worker was told the version yet */
        int64_t latest = 0;
        for (size_t i = 0; i < clock->members.n; i++)
            if (!clock->members.items[i].left && clock->members.items[i].clock > latest)
                latest = clock->members.items[i].clock;
        clock->ask_clock = latest + 1;
        clock->ask_version = clock->version + !is_new;
    }
    clock->asks = asks;
    clock->seen_version = clock->version;
}

/* Also true if the worker has continued and its next push waits: that push is not decided. */
bool clock_rests(const struct clock_member *member)
{
    return member->kept_seq == member->last_seq;
}

bool clock_all_rest(const struct clock *clock)
{
    for (size_t i = 0; i < clock->members.n; i++)
        if (!clock_rests(&clock->members.items[i]))
            return false;
    return true;
}

void clock_ask(struct clock *clock)
{
    pthread_mutex_lock(&clock->lock);
    clock->askers++;
    clock_unlock(clock);
}

void clock_end_ask(struct clock *clock)
{
    pthread_mutex_lock(&clock->lock);
    BUG_ON(!clock->askers);
    clock->askers--;
    clock_unlock(clock);
}

/* ---- resting ---- */

void clock_rest(struct clock *clock, const struct push_id *id, struct clock_waiter *waiter)
{
    struct error reason = ERROR_INIT;
    pthread_mutex_lock(&clock->lock);
    struct clock_member *member = clock_member(clock, id->worker, false);
    int code = 0;
    if (!member || !member->joined || member->incarnation != id->incarnation) {
        code = error_set(&reason, ERR_UNAVAILABLE,
                         "worker:%" PRId64 ", incarnation %" PRIx64 ", is none of the clock '%s'",
                         id->worker, id->incarnation, clock->name);
    } else if (member->state != PUSH_NONE) {
        code = error_set(&reason, ERR_DATA,
                         "worker:%" PRId64 " rests while its step %" PRId64 " waits", id->worker,
                         member->push.seq);
    } else {
        member->kept_seq = member->last_seq;
        member->seen = time_now();
        waiter->id = *id;
        clock_wait(clock, waiter, WAIT_REST);
    }
    clock_unlock(clock);
    if (code)
        waiter->done(waiter, NULL, &reason);
}

/* ---- lost states ---- */

/* A waiting push is decided before the worker is told anything. */
void clock_find_state(struct clock *clock, struct clock_member *member,
                      const struct journal_head *heads, int n)
{
    int64_t last = member->state == PUSH_NONE ? member->last_seq : member->push.seq;
    bool is_on_shards = member->kept_seq == last, has_copy = false;
    for (int i = 0; i < n; i++)
        has_copy |= heads[i].incarnation == clock->incarnation && heads[i].step == last;
    member->has_own = clock->keeps && !is_on_shards && has_copy;
    if (!clock->keeps || is_on_shards || member->has_own)
        return;
    if (!clock->failure.code)
        error_set(&clock->failure, ERR_UNAVAILABLE,
                  "worker:%" PRId64 " was started again without what it had kept since its step "
                  "%" PRId64 ": all have to go back to a checkpoint",
                  member->worker, member->kept_seq);
    clock->is_lost = true;
}
