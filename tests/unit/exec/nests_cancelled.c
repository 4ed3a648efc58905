/* SPDX-License-Identifier: Apache-2.0
 *
 * Random nests of conditionals and loops, most of them cut over several devices, with several steps
 * under way at once; values arrive in any order, the test holds variables for a while, and steps
 * are cancelled at random moments: all steps end, none keeps a variable, and the plan still works.
 * CANCELS is how many nests (default 150), CANCELS_SEED the first one's seed.
 */
#include "lib/nest_plan.h"

#include "lib/shuffled.h"

#define N_STEPS 3

struct flight {
    struct shuffled_ending ending; /* must be first */
    struct step step;
    struct error err;
    struct tensor fetches[NEST_SLOTS];
    bool was_cancelled;
};

struct flights {
    struct nest *nest;
    struct plan_set *plan;
    struct variable_store *store;
    uint64_t random;
    struct flight items[N_STEPS];
    bool held[NEST_VARIABLES]; /* by the test */
    int n_cancelled, n_done;
};

static int pick(struct flights *f, int n)
{
    return (int)(unit_random(&f->random) % (uint64_t)n);
}

static void start(struct flights *f, int i, const struct tensor *feeds)
{
    struct flight *flight = &f->items[i];
    *flight =
        (struct flight){.ending = {.done = {.done = shuffled_note_end}}, .step = {.number = i + 1}};
    flight->ending.done.computes = pick(f, 2);
    flight->ending.err = &flight->err;
    flight->step.rendezvous = shuffled_new(unit_random(&f->random));
    plan_set_start(f->plan, &flight->step, feeds, flight->fetches, &flight->ending.done);
}

static void hold(struct flights *f)
{
    for (int i = 0; i < NEST_VARIABLES; i++) {
        f->held[i] = pick(f, 2);
        if (f->held[i])
            variable_lock_wait(nest_variable(f->store, i), true);
    }
}

static bool let_go(struct flights *f)
{
    int i = pick(f, NEST_VARIABLES);
    if (!f->held[i])
        return false;
    f->held[i] = false;
    variable_unlock(nest_variable(f->store, i), true);
    return true;
}

static bool cancel(struct flights *f)
{
    struct flight *flight = &f->items[pick(f, N_STEPS)];
    struct error reason = ERROR_INIT;
    if (flight->was_cancelled || atomic_load(&flight->ending.is_over))
        return false;
    error_set(&reason, ERR_CANCELLED, "at random");
    flight->was_cancelled = true;
    step_cancel(&flight->step, &reason);
    return true;
}

/* Makes one random event happen. Returns false if it could not. */
static bool act(struct flights *f)
{
    int what = pick(f, 16);
    if (what == 0)
        return cancel(f);
    return what < 4
               ? let_go(f)
               : shuffled_arrive((struct shuffled *)f->items[pick(f, N_STEPS)].step.rendezvous);
}

static bool all_over(const struct flights *f)
{
    for (int i = 0; i < N_STEPS; i++)
        if (!atomic_load(&f->items[i].ending.is_over))
            return false;
    return !f->held[0] && !f->held[1];
}

static void finish(struct flights *f)
{
    double last = time_now();
    while (!all_over(f)) {
        if (act(f))
            last = time_now();
        else if (time_now() - last > SHUFFLED_SECONDS)
            fail_msg("CANCELS_SEED=%llu: hangs", (unsigned long long)f->nest->seed);
    }
}

static void check_ends(struct flights *f)
{
    for (int i = 0; i < N_STEPS; i++) {
        struct flight *flight = &f->items[i];
        if (flight->ending.code != 0 &&
            (flight->ending.code != ERR_CANCELLED || !flight->was_cancelled))
            fail_msg("CANCELS_SEED=%llu: %s", (unsigned long long)f->nest->seed, flight->err.text);
        f->n_cancelled += flight->ending.code != 0;
        f->n_done += flight->ending.code == 0;
        for (int k = 0; k < NEST_SLOTS; k++)
            tensor_release(&flight->fetches[k]);
        flight->step.rendezvous->free(flight->step.rendezvous);
    }
    for (int i = 0; i < NEST_VARIABLES; i++) {
        struct variable *variable = nest_variable(f->store, i);
        if (!variable_lock_until(variable, true, 0))
            fail_msg("CANCELS_SEED=%llu: a step that is over has variable %d",
                     (unsigned long long)f->nest->seed, i);
        variable_unlock(variable, true);
    }
}

static void check_whole_step(struct flights *f, const struct tensor *feeds)
{
    struct nest_state wanted = f->nest->start;
    struct step step = {.number = 9};
    struct tensor fetches[NEST_SLOTS];
    nest_run(&wanted, &f->nest->program);
    nest_set_variables(f->store, &f->nest->start);
    if (plan_set_run(f->plan, &step, feeds, fetches, &f->nest->err) ||
        !nest_agrees(&wanted, fetches, f->store))
        fail_msg("CANCELS_SEED=%llu: %s", (unsigned long long)f->nest->seed,
                 f->nest->err.code ? f->nest->err.text : "other values");
    for (int k = 0; k < NEST_SLOTS; k++)
        tensor_release(&fetches[k]);
}

static void fly(struct flights *f)
{
    struct nest_state inputs = f->nest->start;
    struct tensor feeds[NEST_SLOTS];
    for (int i = 0; i < NEST_SLOTS; i++)
        feeds[i] = nest_slot_tensor(&inputs, i);
    for (int round = 0; round < 3; round++) {
        nest_set_variables(f->store, &f->nest->start);
        hold(f);
        for (int i = 0; i < N_STEPS; i++)
            start(f, i, feeds);
        finish(f);
        check_ends(f);
        check_whole_step(f, feeds);
    }
}

static void check_nest(struct flights *f, uint64_t seed)
{
    struct nest n = {.seed = seed, .arena = ARENA_INIT};
    struct cut_graph cut;
    n.program = nest_make(seed, &n.arena);
    nest_make_start(&n.start, seed);
    nest_make_graph(&n, 1 + (int)(seed % 3), seed % 2);
    bool is_cut = seed % 4 > 0, dynamic = is_cut || seed % 8;
    cut_place(n.graph, seed, 2 + (int)(seed % (CUT_DEVICES - 1)));
    cut_open(&cut, n.graph);
    f->nest = &n;
    f->random = ~seed;
    f->store = variable_store_new();
    f->plan = nest_plan(&n, is_cut ? &cut : NULL, f->store, 1 + (int)(seed % 2), dynamic);
    if (!f->plan)
        fail_msg("%s", n.err.text);
    fly(f);
    plan_set_free(f->plan);
    variable_store_free(f->store);
    cut_close(&cut);
    graph_free(n.graph);
    arena_release(&n.arena);
}

static void cancelled_steps_leave_nothing(void **state)
{
    struct seed_range seeds = seeds_of("CANCELS", 150);
    struct flights f = {.n_done = 0};
    (void)state;
    for (int i = 0; i < seeds.n; i++)
        check_nest(&f, seeds.first + (uint64_t)i);
    assert_true(f.n_done > 0 && f.n_cancelled > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cancelled_steps_leave_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
