/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of state tables (base/life.h): checks that each cell is as expected, that a bug changes
 * nothing, and that each state can reach the last one, which is never left.
 */
#ifndef TF_TESTS_LIB_LIFE_H
#define TF_TESTS_LIB_LIFE_H

#include <string.h>

#include "lib/unit.h"

struct life_table {
    const char *states;          /* a letter for each; the last one is the end */
    const char *reactions;       /* a letter for each from 1 on; the first is the bug */
    const char *const *expected; /* by event, for each state "RS": reaction and next state */
    int n_events;
    int (*react)(int *state, int event);
};

static inline void life_check_cells(const struct life_table *t)
{
    int n_states = (int)strlen(t->states), n_reactions = (int)strlen(t->reactions);
    for (int event = 0; event < t->n_events; event++) {
        assert_int_equal(strlen(t->expected[event]), 3 * n_states - 1);
        for (int at = 0; at < n_states; at++) {
            const char *cell = t->expected[event] + 3 * at;
            int next = at, what = t->react(&next, event);
            assert_in_range(what, 1, n_reactions);
            assert_in_range(next, 0, n_states - 1);
            if (t->reactions[what - 1] != cell[0] || t->states[next] != cell[1])
                fail_msg("event %d in %c: %c%c, not %.2s", event, t->states[at],
                         t->reactions[what - 1], t->states[next], cell);
            assert_true(next == at || (what != 1 && at != n_states - 1));
        }
    }
}

static inline void life_check_ends(const struct life_table *t)
{
    int n_states = (int)strlen(t->states);
    unsigned ends = 1u << (n_states - 1);
    for (int round = 0; round < n_states; round++)
        for (int event = 0; event < t->n_events; event++)
            for (int at = 0; at < n_states; at++) {
                int next = at;
                t->react(&next, event);
                ends |= (ends >> next & 1) << at;
            }
    assert_int_equal(ends, (1u << n_states) - 1);
}

/* Checks that an event from outside is a bug in no state. */
static inline void life_check_comes(const struct life_table *t, int event)
{
    for (int at = 0; t->states[at]; at++) {
        int next = at;
        if (t->react(&next, event) == 1)
            fail_msg("event %d in %c is a bug", event, t->states[at]);
    }
}

#endif
