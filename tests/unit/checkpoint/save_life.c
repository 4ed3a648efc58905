/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of states of a background save, cell by cell.
 */
#include "checkpoint/job/save_life.h"

#include "lib/life.h"

/* States: Marked, Locking, Writing, Done, Idle. Reactions: Bug, goes On, Waits, is left oUt, Joins.
 */
static const char *const expected[SAVE_EVENTS] = {
    [SAVE_COLLECTED] = "OL BL BW BD BI",
    [SAVE_LOCKED] = "BM OW BW BD BI", /* not before its values are collected */
    [SAVE_ENDED] = "OD OD OD BD BI",
    [SAVE_DUE] = "UM UL UW UD OI", /* one is under way at a time */
    [SAVE_CUT] = "WM OL OW OD OI", /* a variable has one snapshot */
    [SAVE_TURN] = "WM WL WW JI OI",
    [SAVE_AWAIT] = "JM JL JW JI OI",
};

static int react(int *state, int event)
{
    enum save_life life = (enum save_life) * state;
    int what = (int)save_life_react(&life, (enum save_event)event);
    *state = (int)life;
    return what;
}

static const struct life_table table = {"MLWDI", "BOWUJ", expected, SAVE_EVENTS, react};

static void each_cell_is_what_is_said(void **state)
{
    (void)state;
    life_check_cells(&table);
    life_check_ends(&table);
}

static void steps_go_on_in_any_state(void **state)
{
    (void)state;
    life_check_comes(&table, SAVE_DUE);
    life_check_comes(&table, SAVE_CUT);
    life_check_comes(&table, SAVE_TURN);
    life_check_comes(&table, SAVE_AWAIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_cell_is_what_is_said),
        cmocka_unit_test(steps_go_on_in_any_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
