/* SPDX-License-Identifier: Apache-2.0
 *
 * States that workers have of their own: when they are asked for them, and that none is lost.
 *
 * A worker gives its state between the answer to its push and its next step, when no push of it is
 * on its way. When all have, what the shards have of each is as of its last push that was decided:
 * a checkpoint of that moment forgets pushes that wait, which workers repeat that go on from it.
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

/* ---- asking ---- */

void clock_update_asks(struct clock *clock)
{
    bool stops = clock->stop_at && clock->version >= clock->stop_at;
    bool asks = clock->keeps && (clock->askers || stops);
    if (asks && !clock->asks) {
        bool is_new = clock->version > clock->seen_version; /* nobody was told it yet */
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

/* Returns true also if it has gone on since, and its next push waits: that is not decided. */
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

/* ---- losing ---- */

/* A push that waits is decided before the worker is told anything. */
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
