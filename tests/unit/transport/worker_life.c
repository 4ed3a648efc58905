/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of a worker's states, cell by cell.
 */
#include "transport/session/worker.h"

#include "lib/life.h"

/* States: Meets, Starts, Waits, Heard, sTeps, Parts, Left. Reactions: Bug, Ignores, goes On, Keeps,
 * Gives, Tells, tells and gives what it has as it Parts, Aborts. */
static const char *const expected[WORKER_EVENTS] = {
    [WORKER_OPENED] = "OS BS BW BH BT BP BL",
    [WORKER_STARTED] = "BM OW BW BH BT BP BL",
    [WORKER_BEGINS] = "BM OS OT KT BT OP BL", /* a message from before is kept as the step begins */
    [WORKER_ENDS] = "BM OS BW BH OW OP BL",
    [WORKER_HEARS] = "IM KS OH IH KT IP IL",
    [WORKER_RESTS] = "IM IS GW GH IT IP IL", /* only between two steps */
    [WORKER_PARTED] = "BM BS OP OP BT BP BL",
    [WORKER_LEAVES] = "IM IS TW TH IT PP IL", /* no other counts on one that has not joined */
    [WORKER_GOES] = "BM BS OL OL BT OL BL",
    [WORKER_CLOSES] = "AM AS AW AH AT AP IL", /* one that has left has given its reason */
};

static int react(int *state, int event)
{
    enum worker_life life = (enum worker_life) * state;
    int what = (int)worker_react(&life, (enum worker_event)event);
    *state = (int)life;
    return what;
}

static const struct life_table table = {"MSWHTPL", "BIOKGTPA", expected, WORKER_EVENTS, react};

static void each_cell_is_what_is_said(void **state)
{
    (void)state;
    life_check_cells(&table);
    life_check_ends(&table);
}

static void what_others_and_signals_do_comes_in_any_state(void **state)
{
    (void)state;
    life_check_comes(&table, WORKER_HEARS);
    life_check_comes(&table, WORKER_RESTS);
    life_check_comes(&table, WORKER_LEAVES);
    life_check_comes(&table, WORKER_CLOSES);
}

/* The outer step goes on, and its end is what counts. */
static void a_step_within_a_step_changes_nothing(void **state)
{
    struct worker worker = {.state = WORKER_STEPS, .member = {.task = "worker:0"}};
    struct driver driver = {.step = 1};
    struct plan_request call = {.n_feeds = 0};
    struct step step = {.number = 2};
    struct error err = ERROR_INIT;
    (void)state;
    worker_bind_driver(&worker, &driver);
    assert_int_equal(driver.run(driver.run_context, &call, &step, NULL, &err), ERR_INTERNAL);
    assert_string_equal(err.text, "worker:0: a step out of its turn");
    assert_int_equal(worker.state, WORKER_STEPS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_cell_is_what_is_said),
        cmocka_unit_test(what_others_and_signals_do_comes_in_any_state),
        cmocka_unit_test(a_step_within_a_step_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
