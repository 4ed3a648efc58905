/* SPDX-License-Identifier: Apache-2.0
 *
 * Stale synchronous parallel (Ho et al., "More Effective Distributed ML via a Stale Synchronous
 * Parallel Parameter Server", 2013): every push is a round; no worker starts its step c before all
 * have finished step c - S - 1 and those rounds are applied. S = 0 is bulk synchronous. Within a
 * clock, pushes are ordered by rank.
 */
#include "resource/clock_private.h"

/* Chooses a push after which its worker could go on, by clock and rank. */
static bool choose(struct clock *clock)
{
    struct clock_member *first = NULL;
    vec_each(member, &clock->members)
        if (member->state == PUSH_WAITS &&
            member->clock + 1 - clock->policy.number <= clock->least_pushed &&
            (!first || member->clock < first->clock))
            first = member;
    if (first)
        first->state = PUSH_CHOSEN;
    return first != NULL;
}

static bool may_go_on(const struct clock *clock, const struct clock_member *member)
{
    return clock->least_applied >= member->clock - clock->policy.number;
}

static bool misses(const struct clock *clock, const struct clock_member *member)
{
    return member->state == PUSH_NONE && member->clock == clock->least_applied;
}

/* All rest at the same clock, which no worker had reached when states were asked for: a worker that
 * rested earlier would hold back those behind it. */
static bool may_rest(const struct clock *clock, const struct clock_member *member)
{
    return member->clock >= clock->ask_clock;
}

const struct policy_kind policy_ssp = {
    .name = "ssp",
    .option = "bound",
    .needs_option = true,
    .usage = "ssp,bound=S",
    .doc = "nobody reads a value staler than S clocks",
    .choose = choose,
    .may_go_on = may_go_on,
    .misses = misses,
    .may_rest = may_rest,
};
