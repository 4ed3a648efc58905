/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of a served session's states, cell by cell.
 */
#include "transport/session/served_life.h"

#include "lib/life.h"

/* States: Reading, Linking, Open, Closing. Reactions: Bug, Ignores, goes On, Refuses, Fails, Tells
 * who waits, Ends. */
static const char *const expected[SERVED_EVENTS] = {
    [SERVED_READ] = "OL BL BO IC", /* its driver may be gone by then */
    [SERVED_LINKED] = "IR OL IO IC",
    [SERVED_MISSED] = "IR FL IO IC", /* a link that breaks later fails steps */
    [SERVED_LATE] = "BR FL BO IC",
    [SERVED_WHOLE] = "BR OO BO IC",
    [SERVED_ASKED] = "RR RL OO RC", /* not before its driver knows that it is open */
    [SERVED_LEFT] = "OR OL OO RC",
    [SERVED_CLOSE] = "TC TC EC IC",
};

static int react(int *state, int event)
{
    enum served_life life = (enum served_life) * state;
    int what = (int)served_life_react(&life, (enum served_event)event);
    *state = (int)life;
    return what;
}

static const struct life_table table = {"RLOC", "BIORFTE", expected, SERVED_EVENTS, react};

static void each_cell_is_what_is_said(void **state)
{
    (void)state;
    life_check_cells(&table);
    life_check_ends(&table);
}

static void what_peers_do_comes_in_any_state(void **state)
{
    (void)state;
    life_check_comes(&table, SERVED_LINKED);
    life_check_comes(&table, SERVED_MISSED);
    life_check_comes(&table, SERVED_ASKED);
    life_check_comes(&table, SERVED_LEFT);
    life_check_comes(&table, SERVED_CLOSE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_cell_is_what_is_said),
        cmocka_unit_test(what_peers_do_comes_in_any_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
