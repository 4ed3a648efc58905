/* SPDX-License-Identifier: Apache-2.0
 *
 * The consistency policies: which pushes make up the next round, and who may go on when.
 */
#include "ps/clock_private.h"

/* ---- which pushes ---- */

static bool is_fresh(const struct clock *clock, const struct member *member)
{
    return member->state == PUSH_WAITS && !policy_is_late(clock, member);
}

bool policy_is_late(const struct clock *clock, const struct member *member)
{
    return clock->policy.kind == POLICY_SYNC && member->version < clock->version;
}

/* The first that came of those that wait. */
static struct member *first_fresh(struct clock *clock)
{
    struct member *first = NULL;
    for (size_t i = 0; i < clock->members.n; i++) {
        struct member *member = &clock->members.items[i];
        if (is_fresh(clock, member) && (!first || member->arrival < first->arrival))
            first = member;
    }
    return first;
}

static bool choose_sync(struct clock *clock)
{
    int64_t wanted = -clock->policy.backup, fresh = 0;
    for (size_t i = 0; i < clock->members.n; i++) {
        wanted += !clock->members.items[i].left;
        fresh += is_fresh(clock, &clock->members.items[i]);
    }
    wanted = wanted > 1 ? wanted : 1;
    if (fresh < wanted)
        return false;
    while (wanted-- > 0)
        first_fresh(clock)->state = PUSH_CHOSEN;
    return true;
}

static bool choose_async(struct clock *clock)
{
    struct member *first = first_fresh(clock);
    if (first)
        first->state = PUSH_CHOSEN;
    return first != NULL;
}

/* The least clock of those who are there: of pushes that came, or that are applied. */
static int64_t least_clock(const struct clock *clock, bool applied)
{
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < clock->members.n; i++) {
        const struct member *member = &clock->members.items[i];
        int64_t at = member->clock + (!applied && member->state != PUSH_NONE);
        if (!member->left && at < least)
            least = at;
    }
    return least;
}

/* A push is applied when its worker could go on after it, by clock and rank. */
static bool choose_ssp(struct clock *clock)
{
    int64_t least = least_clock(clock, false);
    struct member *first = NULL;
    for (size_t i = 0; i < clock->members.n; i++) {
        struct member *member = &clock->members.items[i];
        if (member->state == PUSH_WAITS && member->clock + 1 - clock->policy.bound <= least &&
            (!first || member->clock < first->clock))
            first = member;
    }
    if (first)
        first->state = PUSH_CHOSEN;
    return first != NULL;
}

bool policy_choose(struct clock *clock)
{
    switch (clock->policy.kind) {
    case POLICY_SYNC:
        return choose_sync(clock);
    case POLICY_ASYNC:
        return choose_async(clock);
    case POLICY_SSP:
        return choose_ssp(clock);
    default:
        return false;
    }
}

/* ---- who may go on ---- */

bool policy_releases(const struct clock *clock, const struct member *member)
{
    if (clock->policy.kind == POLICY_SYNC)
        return !clock->under_way; /* variables change now */
    if (clock->policy.kind == POLICY_SSP)
        return least_clock(clock, true) >= member->clock - clock->policy.bound;
    return true;
}

bool policy_misses(const struct clock *clock, const struct member *member)
{
    if (member->left)
        return false;
    if (clock->policy.kind == POLICY_SSP)
        return member->state == PUSH_NONE && member->clock == least_clock(clock, true);
    return clock->policy.kind == POLICY_SYNC && member->state == PUSH_NONE;
}
