/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of a worker: what each event does in each state and which comes then, cell by cell, and
 * what must hold of any such table.
 */
#include "transport/session/worker_life.h"

#include "lib/unit.h"

/* A letter for each state, as in its name's place here: Meets, Starts, Waits, Heard, sTeps, Parts,
 * Left. */
static const char states[] = "MSWHTPL";

/* By event and state what is done (Bug, Ignored, goes On, Keeps, Gives, Tells, tells and Parts,
 * Aborts), and the state then. */
static const char *const expected[WORKER_EVENTS] = {
    [WORKER_OPENED] = "OS BS BW BH BT BP BL",
    [WORKER_STARTED] = "BM OW BW BH BT BP BL",
    [WORKER_BEGINS] = "BM OS OT KT BT OP BL", /* what was heard before is kept as the step begins */
    [WORKER_ENDS] = "BM OS BW BH OW OP BL",
    [WORKER_HEARS] = "IM KS OH IH KT IP IL",
    [WORKER_RESTS] = "IM IS GW GH IT IP IL", /* between two steps alone */
    [WORKER_PARTED] = "BM BS OP OP BT BP BL",
    [WORKER_LEAVES] = "IM IS TW TH IT PP IL", /* who has not joined is not counted on */
    [WORKER_GOES] = "BM BS OL OL BT OL BL",
    [WORKER_CLOSES] = "AM AS AW AH AT AP IL", /* who has left has told why it ends */
};

static int react(int at, int event, enum worker_life *next)
{
    *next = (enum worker_life)at;
    return worker_react(next, (enum worker_event)event);
}

static void each_cell_is_what_is_said(void **state)
{
    static const char letters[] = " BIOKGTPA";
    enum worker_life next;
    (void)state;
    for (int event = 0; event < WORKER_EVENTS; event++)
        for (int at = 0; at < WORKER_STATES; at++) {
            const char *cell = expected[event] + 3 * at;
            int reaction = react(at, event, &next);
            assert_in_range(reaction, WORKER_BUG, WORKER_ABORT);
            assert_in_range(next, 0, WORKER_STATES - 1);
            if (letters[reaction] != cell[0] || states[next] != cell[1])
                fail_msg("event %d in %c: %c%c, not %.2s", event, states[at], letters[reaction],
                         states[next], cell);
        }
}

/* What another sends, and what a signal leads to, comes in any state. */
static void what_others_do_is_no_bug(void **state)
{
    static const enum worker_event others[] = {WORKER_HEARS, WORKER_RESTS, WORKER_LEAVES,
                                               WORKER_CLOSES};
    enum worker_life next;
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        for (int at = 0; at < WORKER_STATES; at++)
            assert_int_not_equal(react(at, (int)others[i], &next), WORKER_BUG);
}

/* A bug changes nothing, and nobody comes back to a state in which others do not count on it. */
static void a_worker_goes_one_way(void **state)
{
    enum worker_life next;
    (void)state;
    for (int event = 0; event < WORKER_EVENTS; event++)
        for (int at = 0; at < WORKER_STATES; at++) {
            if (react(at, event, &next) == WORKER_BUG)
                assert_int_equal(next, at);
            if ((int)next < at)
                assert_true(at == WORKER_STEPS && next == WORKER_WAITS);
        }
}

/* From each state it can come to its end. */
static void a_worker_ends(void **state)
{
    unsigned ends = 1u << WORKER_LEFT;
    enum worker_life next;
    (void)state;
    for (int round = 0; round < WORKER_STATES; round++)
        for (int event = 0; event < WORKER_EVENTS; event++)
            for (int at = 0; at < WORKER_STATES; at++)
                if (react(at, event, &next) != WORKER_BUG && ends & 1u << next)
                    ends |= 1u << at;
    assert_int_equal(ends, (1u << WORKER_STATES) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_cell_is_what_is_said),
        cmocka_unit_test(what_others_do_is_no_bug),
        cmocka_unit_test(a_worker_goes_one_way),
        cmocka_unit_test(a_worker_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
