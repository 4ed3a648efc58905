/* SPDX-License-Identifier: Apache-2.0
 *
 * Synchronous: a round consists of one fresh push of each worker that is expected or has joined,
 * and has not left. With B backup workers (Chen et al., "Revisiting Distributed Synchronous SGD",
 * 2016) B fewer pushes suffice: the first count, the others are late.
 */
#include "resource/clock_private.h"

static bool is_late(const struct clock *clock, const struct clock_member *member)
{
    return member->version < clock->version;
}

static bool choose(struct clock *clock)
{
    int64_t wanted = -clock->policy.number, fresh = 0;
    for (size_t i = 0; i < clock->members.n; i++) {
        wanted += !clock->members.items[i].left;
        fresh += clock_is_fresh(clock, &clock->members.items[i]);
    }
    wanted = wanted > 1 ? wanted : 1;
    if (fresh < wanted)
        return false;
    while (wanted-- > 0)
        clock_first_fresh(clock)->state = PUSH_CHOSEN;
    return true;
}

static bool may_go_on(const struct clock *clock, const struct clock_member *member)
{
    (void)member;
    return !clock->under_way; /* variables change meanwhile */
}

static bool misses(const struct clock *clock, const struct clock_member *member)
{
    (void)clock;
    return member->state == PUSH_NONE;
}

/* All rest after the same round, the first whose members are all told to: if one rested earlier,
 * the others, who wait for its next push, would never come to rest. */
static bool may_rest(const struct clock *clock, const struct clock_member *member)
{
    (void)member;
    return clock->version >= clock->ask_version;
}

const struct policy_kind policy_sync = {
    .name = "sync",
    .option = "backup",
    .leaves_out = true,
    .one_version = true,
    .usage = "sync; sync,backup=B",
    .doc = "all count in every step (same seed, same bits), or all but the last B",
    .choose = choose,
    .is_late = is_late,
    .may_go_on = may_go_on,
    .misses = misses,
    .may_rest = may_rest,
};
