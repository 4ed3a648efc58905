/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of a shard's states, cell by cell.
 */
#include "ps/shard_life.h"

#include "lib/life.h"

/* States: sTarts, Serves, Awaits, saved (L: the last one), saved and aWaits, Ends. Reactions: Bug,
 * Ignores, goes On, Refuses, Checks, sTops the clock, Lets it go. */
static const char *const expected[SHARD_EVENTS] = {
    [SHARD_START] = "OS BS OA BL BW IE",
    [SHARD_RESTORE] = "OT OS OA OL OW RE",
    [SHARD_WHOLE] = "OT OS OS OL OL IE",
    [SHARD_PART] = "OA OA OA OW OW IE",
    [SHARD_CLOCK] = "IT TS TA IL IW IE", /* a clock is not due while it is half restored */
    [SHARD_TURN] = "BT OS OA LL LW LE",
    [SHARD_SAVE] = "OT OS CA OL CW RE", /* a requested save is made after the last one, too */
    [SHARD_JOINED] = "IT IS OS IL OL IE",
    [SHARD_LAST] = "OL OL BA OL BW IE", /* a shard in A has refused to make it */
    [SHARD_LOST] = "OL OL BA OL BW IE",
    [SHARD_END] = "OE OE OE OE OE IE",
};

static int react(int *state, int event)
{
    enum shard_life life = (enum shard_life) * state;
    int what = (int)shard_life_react(&life, (enum shard_event)event);
    *state = (int)life;
    return what;
}

static const struct life_table table = {"TSALWE", "BIORCTL", expected, SHARD_EVENTS, react};

static void each_cell_is_what_is_said(void **state)
{
    (void)state;
    life_check_cells(&table);
    life_check_ends(&table);
}

static void what_is_asked_comes_in_any_state(void **state)
{
    (void)state;
    life_check_comes(&table, SHARD_RESTORE);
    life_check_comes(&table, SHARD_SAVE);
    life_check_comes(&table, SHARD_JOINED);
    life_check_comes(&table, SHARD_END);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_cell_is_what_is_said),
        cmocka_unit_test(what_is_asked_comes_in_any_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
