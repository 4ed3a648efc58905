/* SPDX-License-Identifier: Apache-2.0 */
#include "resource/clock_private.h"

void clock_update_least(struct clock *clock)
{
    clock->least_applied = clock->least_pushed = INT64_MAX;
    vec_each(member, &clock->members) {
        int64_t pushed = member->clock + (member->state != PUSH_NONE);
        if (member->left)
            continue;
        if (member->clock < clock->least_applied)
            clock->least_applied = member->clock;
        if (pushed < clock->least_pushed)
            clock->least_pushed = pushed;
    }
}

bool clock_choose(struct clock *clock)
{
    return clock->policy.kind && clock->policy.kind->choose(clock);
}

bool clock_is_late(const struct clock *clock, const struct clock_member *member)
{
    const struct policy_kind *kind = clock->policy.kind;
    return kind && kind->is_late && kind->is_late(clock, member);
}

bool clock_may_go_on(const struct clock *clock, const struct clock_member *member)
{
    const struct policy_kind *kind = clock->policy.kind;
    return !kind || !kind->may_go_on || kind->may_go_on(clock, member);
}

bool clock_misses(const struct clock *clock, const struct clock_member *member)
{
    const struct policy_kind *kind = clock->policy.kind;
    return !member->left && kind && kind->misses && kind->misses(clock, member);
}

bool clock_asks_for(const struct clock *clock, const struct clock_member *member)
{
    const struct policy_kind *kind = clock->policy.kind;
    return clock->asks && (!kind || !kind->may_rest || kind->may_rest(clock, member));
}

bool clock_is_fresh(const struct clock *clock, const struct clock_member *member)
{
    return member->state == PUSH_WAITS && !clock_is_late(clock, member);
}

struct clock_member *clock_first_fresh(struct clock *clock)
{
    struct clock_member *first = NULL;
    vec_each(member, &clock->members)
        if (clock_is_fresh(clock, member) && (!first || member->arrival < first->arrival))
            first = member;
    return first;
}
