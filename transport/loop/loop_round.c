/* SPDX-License-Identifier: Apache-2.0
 *
 * The duration of a loop's rounds: during one the loop serves nothing else.
 */
#include "base/time.h"
#include "transport/loop/loop_private.h"

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

void loop_end_round(struct loop *loop)
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
