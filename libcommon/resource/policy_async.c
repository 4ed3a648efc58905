/* SPDX-License-Identifier: Apache-2.0
 *
 * Asynchronous: every push is a round, in order of arrival.
 */
#include "resource/clock_private.h"

static bool choose(struct clock *clock)
{
    struct clock_member *first = clock_first_fresh(clock);
    if (first)
        first->state = PUSH_CHOSEN;
    return first != NULL;
}

const struct policy_kind policy_async = {
    .name = "async",
    .usage = "async",
    .doc = "a push is applied when it comes",
    .choose = choose,
};
