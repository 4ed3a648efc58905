/* SPDX-License-Identifier: Apache-2.0
 *
 * The clock: members, rounds, and waiters. Every change under the lock ends with clock_unlock,
 * which finds the waiters whose wait is over and calls them without the lock.
 */
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

#include "base/failpoint.h"
#include "base/memory.h"
#include "base/thread.h"
#include "base/time.h"
#include "resource/clock_private.h"

#define LOOK_SECONDS 0.1 /* between checks for waits whose deadline has passed */

static void *clock_create(const char *name)
{
    struct clock *clock = mem_alloc(sizeof *clock);
    clock->name = name;
    /* Distinguishes clocks of one name in successive processes. */
    int64_t bits;
    if (getrandom(&bits, sizeof bits, 0) != sizeof bits)
        bits = (int64_t)(time_now() * 1e9);
    clock->incarnation = bits;
    pthread_mutex_init(&clock->lock, NULL);
    time_cond_init(&clock->changed);
    return clock;
}

static void clock_free(void *object)
{
    struct clock *clock = object;
    pthread_mutex_lock(&clock->lock);
    clock->ends = true;
    pthread_cond_broadcast(&clock->changed);
    pthread_mutex_unlock(&clock->lock);
    if (clock->has_timer)
        pthread_join(clock->timer, NULL);
    vec_release(&clock->members);
    vec_release(&clock->dropped);
    vec_release(&clock->round_members);
    vec_release(&clock->round_dropped);
    pthread_cond_destroy(&clock->changed);
    pthread_mutex_destroy(&clock->lock);
    mem_free(clock);
}

const struct resource_kind clock_kind = {
    .name = "clock",
    .marked_first = true,
    .create = clock_create,
    .free = clock_free,
    .snapshot = clock_snapshot,
    .save = clock_save,
    .restore = clock_restore,
    .describe = clock_describe,
};

/* ---- members ---- */

struct clock_member *clock_member(struct clock *clock, int64_t worker, bool make)
{
    size_t at = 0, end = clock->members.n;
    while (at < end) {
        size_t middle = at + (end - at) / 2;
        if (clock->members.items[middle].worker < worker)
            at = middle + 1;
        else
            end = middle;
    }
    if (at < clock->members.n && clock->members.items[at].worker == worker)
        return &clock->members.items[at];
    if (!make)
        return NULL;
    vec_push(&clock->members, ((struct clock_member){0}));
    struct clock_member *member = &clock->members.items[at];
    memmove(member + 1, member, (clock->members.n - 1 - at) * sizeof *member);
    *member = (struct clock_member){.worker = worker, .last_counted = true};
    return member;
}

int clock_configure(struct clock *clock, const char *text, int workers, struct error *err)
{
    struct policy policy;
    int code = policy_parse(&policy, text, err);
    if (code)
        return code;
    pthread_mutex_lock(&clock->lock);
    const struct policy *is = &clock->policy;
    if (is->kind && (is->kind != policy.kind || is->number != policy.number)) {
        struct str present = STR_INIT;
        policy_print(&present, is);
        code = error_set(err, ERR_CONFIG, "the clock '%s' goes by %s, not %s", clock->name,
                         str_text(&present), text);
        str_release(&present);
    } else {
        clock->policy = policy;
        if (clock->is_restored && workers > 0) {
            /* The job continues with this many workers: all of them are waited for, including those
             * that had left because their data had ended, and no others. */
            vec_each(member, &clock->members) {
                member->returns = member->left && member->worker < workers;
                member->left = member->worker >= workers;
            }
            if (workers < clock->workers)
                clock->workers = workers;
        }
        clock->is_restored = false;
        clock->is_configured = true;
        for (; clock->workers < workers; clock->workers++)
            clock_member(clock, clock->workers, true);
    }
    clock_unlock(clock);
    return code;
}

/* ---- private state of workers: when it is asked for, and that none is lost ---- */

/* A worker gives its state between the reply to its push and its next step, while none of its
 * pushes is under way. When all have given it, each state on the shards is as of its worker's last
 * decided push. A checkpoint of that moment leaves out waiting pushes, as workers repeat them. */

void clock_keep_states(struct clock *clock)
{
    pthread_mutex_lock(&clock->lock);
    if (!clock->keeps)
        clock_forget_waiting(clock);
    clock->keeps = true;
    clock_unlock(clock);
}

/* Recomputes, after a change, whether states are asked for. */
static void update_asks(struct clock *clock)
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

static bool all_rest(const struct clock *clock)
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

/* A worker returns with a journal that has these copies: looks for its state as of its last push
 * that is or will be decided. If it is nowhere, the clock fails. A waiting push is decided before
 * the worker is told anything. */
static void find_state(struct clock *clock, struct clock_member *member,
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

/* ---- the end of waits ---- */

/* While the clock is paused no worker with a state may go on, as its state would change. */
static bool has_ended(const struct clock *clock, const struct clock_waiter *waiter,
                      const struct clock_member *member)
{
    if (clock->keeps && clock->pauses)
        return false;
    if (waiter->what == WAIT_JOIN)
        return member->state == PUSH_NONE && clock_may_go_on(clock, member);
    if (waiter->what == WAIT_REST)
        return !clock_asks_for(clock, member) && clock_may_go_on(clock, member);
    return waiter->what == WAIT_PUSH && member->last_seq >= waiter->id.seq &&
           (clock_may_go_on(clock, member) || clock_asks_for(clock, member));
}

static struct push_list list_of(const push_vec *pushes)
{
    return (struct push_list){pushes->items, (int)pushes->n};
}

static bool take_turn(struct clock *clock, struct clock_waiter *waiter)
{
    if (clock->failure.code)
        return true;
    if (waiter->what == WAIT_PAUSE) {
        bool rest = !clock->keeps || all_rest(clock);
        bool over = !clock->under_way && clock->version >= waiter->id.seq && rest;
        clock->pauses += over;
        waiter->result.version = clock->version;
        return over;
    }
    if (waiter->what != WAIT_ROUND) {
        struct clock_member *member = clock_member(clock, waiter->id.worker, true);
        bool over = has_ended(clock, waiter, member);
        if (over) {
            /* A push that was pending when its worker was replaced has another incarnation than the
             * waiter. */
            waiter->result = (struct clock_result){
                .version = clock->version,
                .seq = member->last_seq,
                .counted = (waiter->what == WAIT_PUSH && member->last_seq > waiter->id.seq) ||
                           member->last_counted,
                .asked = clock_asks_for(clock, member),
                .own = member->has_own,
                .incarnation = clock->incarnation,
            };
            if (waiter->what == WAIT_PUSH)
                member->waited += time_now() - waiter->since;
        }
        return over;
    }
    bool stops = clock->stop_at && clock->version >= clock->stop_at && !clock->keeps;
    if (clock->under_way || clock->pauses || stops || !clock_choose(clock))
        return false;
    clock->under_way = true;
    clock->round_members.n = clock->round_dropped.n = 0;
    for (size_t i = 0; i < clock->members.n; i++)
        if (clock->members.items[i].state == PUSH_CHOSEN)
            vec_push(&clock->round_members, clock->members.items[i].push);
    for (size_t i = 0; i < clock->dropped.n; i++)
        vec_push(&clock->round_dropped, clock->dropped.items[i]);
    clock->dropped.n = 0;
    waiter->result = (struct clock_result){.version = clock->version + 1,
                                           .members = list_of(&clock->round_members),
                                           .dropped = list_of(&clock->round_dropped)};
    return true;
}

void clock_unlock(struct clock *clock)
{
    struct clock_waiter *ready = NULL, **end = &ready;
    update_asks(clock);
    clock_update_least(clock);
    struct error failure = clock->failure;
    for (struct clock_waiter **at = &clock->waiters; *at;) {
        struct clock_waiter *waiter = *at;
        if (take_turn(clock, waiter)) {
            *at = waiter->next;
            waiter->next = NULL;
            *end = waiter;
            end = &waiter->next;
        } else {
            at = &waiter->next;
        }
    }
    pthread_mutex_unlock(&clock->lock);
    while (ready) { /* the waiter may be freed once it is called */
        struct clock_waiter *next = ready->next;
        ready->done(ready, failure.code ? NULL : &ready->result, failure.code ? &failure : NULL);
        ready = next;
    }
}

/* Ends waits whose deadline has passed. It looks at most ten times a second, so that starting a
 * wait costs nothing. */
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

/* Waiters are served in order of arrival. */
static void begin_wait(struct clock *clock, struct clock_waiter *waiter, enum clock_wait what)
{
    struct clock_waiter **end = &clock->waiters;
    while (*end)
        end = &(*end)->next;
    *end = waiter;
    waiter->what = (int)what;
    waiter->since = time_now();
    waiter->next = NULL;
    if (waiter->timeout > 0 && !clock->has_timer)
        clock->has_timer = !thread_start(&clock->timer, watch_waiters, clock);
}

/* Removes the waits of a worker's older incarnations. */
static struct clock_waiter *remove_older(struct clock *clock, const struct push_id *id)
{
    struct clock_waiter *removed = NULL;
    for (struct clock_waiter **at = &clock->waiters; *at;) {
        struct clock_waiter *waiter = *at;
        if (waiter->what < WAIT_ROUND && waiter->id.worker == id->worker &&
            waiter->id.incarnation != id->incarnation) {
            *at = waiter->next;
            waiter->next = removed;
            removed = waiter;
        } else {
            at = &waiter->next;
        }
    }
    return removed;
}

static int replaced(const struct push_id *id, uint64_t by, struct error *err)
{
    return error_set(err, ERR_UNAVAILABLE,
                     "worker:%" PRId64 ", incarnation %" PRIx64
                     ": replaced by incarnation %" PRIx64,
                     id->worker, id->incarnation, by);
}

/* ---- calls of workers ---- */

void clock_join(struct clock *clock, const struct push_id *id, struct clock_waiter *waiter)
{
    clock_rejoin(clock, id, NULL, 0, waiter);
}

void clock_rejoin(struct clock *clock, const struct push_id *id, const struct journal_head *heads,
                  int n, struct clock_waiter *waiter)
{
    struct error reason = ERROR_INIT;
    pthread_mutex_lock(&clock->lock);
    struct clock_member *member = clock_member(clock, id->worker, true);
    struct clock_waiter *older = remove_older(clock, id);
    bool late = !member->joined && id->worker >= clock->workers;
    if (late || member->left || member->returns) {
        /* It starts at the others' least clock, so that a late worker holds nobody back. */
        int64_t least = INT64_MAX;
        vec_each(other, &clock->members)
            if (other != member && !other->left && !other->returns && other->clock < least)
                least = other->clock;
        least = least == INT64_MAX ? 0 : least;
        member->clock = least > member->clock ? least : member->clock;
    }
    if (clock->by_worker && member->state == PUSH_WAITS)
        member->state = PUSH_NONE;
    member->incarnation = id->incarnation;
    member->joined = clock->was_joined = true;
    member->left = member->returns = false;
    member->seen = time_now();
    waiter->id = *id;
    find_state(clock, member, heads, n);
    begin_wait(clock, waiter, WAIT_JOIN);
    if (older)
        replaced(&older->id, id->incarnation, &reason);
    clock_unlock(clock);
    struct clock_waiter *waiters = older;
    while (waiters) {
        struct clock_waiter *next = waiters->next;
        waiters->done(waiters, NULL, &reason);
        waiters = next;
    }
}

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
        begin_wait(clock, waiter, WAIT_REST);
    }
    clock_unlock(clock);
    if (code)
        waiter->done(waiter, NULL, &reason);
}

/* Decides that the member's waiting push never counts. */
static void decide_late(struct clock *clock, struct clock_member *member)
{
    vec_push(&clock->dropped, member->push);
    member->state = PUSH_NONE;
    member->last_seq = member->push.seq;
    member->last_counted = false;
    member->late++;
}

static int check_push(struct clock *clock, const struct push_id *id, int64_t version,
                      struct error *err)
{
    struct clock_member *member = clock_member(clock, id->worker, false);
    if (!member || !member->joined)
        return error_set(err, ERR_UNAVAILABLE, "worker:%" PRId64 " did not join the clock '%s'",
                         id->worker, clock->name);
    if (member->incarnation != id->incarnation) {
        vec_push(&clock->dropped, *id);
        member->dropped++;
        return replaced(id, member->incarnation, err);
    }
    if (version > clock->version || id->seq <= 0)
        return error_set(err, ERR_DATA,
                         "worker:%" PRId64 " pushes step %" PRId64 " of version %" PRId64
                         "; the newest is %" PRId64,
                         id->worker, id->seq, version, clock->version);
    if (member->state != PUSH_NONE && member->push.seq != id->seq)
        return error_set(err, ERR_DATA,
                         "worker:%" PRId64 " pushes step %" PRId64 " while %" PRId64 " waits",
                         id->worker, id->seq, member->push.seq);
    return 0;
}

void clock_push(struct clock *clock, const struct push_id *id, int64_t version,
                struct clock_waiter *waiter)
{
    struct error reason = ERROR_INIT;
    pthread_mutex_lock(&clock->lock);
    int code = check_push(clock, id, version, &reason);
    if (!code) {
        struct clock_member *member = clock_member(clock, id->worker, false);
        member->seen = time_now();
        if (id->seq <= member->last_seq || member->state != PUSH_NONE) {
            member->duplicate++;
            if (id->seq <= member->last_seq)
                vec_push(&clock->dropped, *id);
        } else {
            member->push = *id;
            member->version = version;
            member->arrival = ++clock->arrivals;
            member->state = PUSH_WAITS;
            member->pushed++;
            if (clock_is_late(clock, member))
                decide_late(clock, member);
        }
        waiter->id = *id;
        begin_wait(clock, waiter, WAIT_PUSH);
    }
    clock_unlock(clock);
    if (code)
        waiter->done(waiter, NULL, &reason);
}

void clock_leave(struct clock *clock, const struct push_id *id)
{
    pthread_mutex_lock(&clock->lock);
    struct clock_member *member = clock_member(clock, id->worker, false);
    if (member && member->incarnation == id->incarnation) {
        member->left = true;
        member->kept_seq = member->last_seq;
        member->seen = time_now();
    }
    clock_unlock(clock);
}

/* ---- rounds, as the owner of the updates drives them ---- */

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
        begin_wait(clock, waiter, WAIT_ROUND);
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
                decide_late(clock, member);
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
    begin_wait(clock, waiter, WAIT_PAUSE);
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
