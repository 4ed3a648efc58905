/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of a round: the reaction to each event in each state, cell by cell, and the rule that a
 * round which follows the table ends.
 */
#include "collective/round.h"

#include "lib/unit.h"

static const char *const states[ROUND_STATES] = {
    [ROUND_NEW] = "NEW",         [ROUND_CALLING] = "CALLING", [ROUND_CALLED] = "CALLED",
    [ROUND_SETTLED] = "SETTLED", [ROUND_RUNNING] = "RUNNING", [ROUND_OVER] = "OVER",
};

/* By event, a letter for each state: Bug, Refused, Ignored, Kept, Taken, Fails. */
static const char *const expected[ROUND_EVENTS] = {
    [ROUND_CALL] = "TBBBBB",         /* once; a key whose round is over starts another round */
    [ROUND_TOLD] = "BTBBBI",         /* it may be cancelled meanwhile */
    [ROUND_CONTRIBUTION] = "KKTKKI", /* the last one settles what all were told of */
    [ROUND_CHUNK] = "RKKKTI",        /* from members that have heard from all */
    [ROUND_LEAVE] = "KKTIII",        /* a member that leaves has sent all */
    [ROUND_LOST] = "KKFFFI",         /* a call not yet told to all fails once it is */
    [ROUND_CANCEL] = "BFFFFI",
};

static void each_cell_is_what_is_said(void **state)
{
    static const char letters[] = " BRIKTF";
    (void)state;
    for (int event = 0; event < ROUND_EVENTS; event++)
        for (int at = 0; at < ROUND_STATES; at++) {
            enum round_reaction reaction =
                round_react((enum round_state)at, (enum round_event)event);
            assert_in_range(reaction, REACT_BUG, REACT_FAIL);
            if (letters[reaction] != expected[event][at])
                fail_msg("event %d in %s: %c, not %c", event, states[at], letters[reaction],
                         expected[event][at]);
        }
}

/* In each state but the last some event makes the round go on, and no event that another member
 * causes is a bug of this process. */
static void a_round_goes_on(void **state)
{
    (void)state;
    for (int at = 0; at < ROUND_OVER; at++) {
        bool goes_on = at == ROUND_SETTLED; /* by itself */
        for (int event = 0; event < ROUND_EVENTS; event++)
            goes_on |= round_react((enum round_state)at, (enum round_event)event) == REACT_TAKE;
        if (!goes_on)
            fail_msg("nothing goes on from %s", states[at]);
    }
    for (int at = 0; at < ROUND_STATES; at++)
        for (int event = ROUND_CONTRIBUTION; event <= ROUND_LOST; event++)
            assert_int_not_equal(round_react((enum round_state)at, (enum round_event)event),
                                 REACT_BUG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_cell_is_what_is_said),
        cmocka_unit_test(a_round_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
