/* SPDX-License-Identifier: Apache-2.0
 *
 * A clock on a bench: the operations of workers, and of the program that runs the updates, as a
 * call each, without a graph or threads.
 */
#ifndef TF_TESTS_CLOCK_BENCH_H
#define TF_TESTS_CLOCK_BENCH_H

#include <stdatomic.h>

#include "lib/unit.h"
#include "resource/clock.h"

struct waiter {
    struct clock_waiter waiter; /* first */
    atomic_int replies;
    struct clock_result result;
    struct error failure;
};

static inline void done(struct clock_waiter *waiter, const struct clock_result *result,
                        const struct error *failure)
{
    struct waiter *w = (struct waiter *)waiter;
    if (failure)
        w->failure = *failure;
    else
        w->result = *result;
    atomic_fetch_add(&w->replies, 1);
}

static inline struct waiter new_waiter(void)
{
    return (struct waiter){.waiter.done = done};
}

struct bench {
    struct variable_store *store;
    struct clock *clock;
};

static inline void bench_open(struct bench *b, const char *policy, int workers)
{
    struct error err = ERROR_INIT;
    b->store = variable_store_new();
    b->clock = resource_get(b->store, &clock_kind, "default", "train");
    assert_int_equal(clock_configure(b->clock, policy, workers, &err), 0);
}

static inline void bench_close(struct bench *b)
{
    variable_store_free(b->store);
}

static inline struct waiter join(struct bench *b, int64_t worker, uint64_t incarnation)
{
    struct waiter w = new_waiter();
    clock_join(b->clock, &(struct push_id){worker, incarnation, 0}, &w.waiter);
    assert_int_equal(w.replies, 1);
    return w;
}

static inline void push(struct bench *b, struct push_id id, int64_t version, struct waiter *w)
{
    *w = new_waiter();
    clock_push(b->clock, &id, version, &w->waiter);
}

/* Hands out a round, and returns its members as digits: worker and step of each. */
static inline int64_t apply_round(struct bench *b)
{
    struct waiter w = new_waiter();
    struct error err = ERROR_INIT;
    int64_t digits = 0;
    clock_round(b->clock, &w.waiter);
    assert_int_equal(w.replies, 1);
    assert_int_equal(w.failure.code, 0);
    for (int i = 0; i < w.result.members.n; i++)
        digits = digits * 100 + w.result.members.ids[i].worker * 10 + w.result.members.ids[i].seq;
    assert_int_equal(clock_advance(b->clock, w.result.version, &err), 0);
    return digits;
}

#endif
