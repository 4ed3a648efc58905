/* SPDX-License-Identifier: Apache-2.0
 *
 * Random nests of conditionals and loops agree with an interpreter that has no graphs, also when
 * they are cut over several devices and values arrive in any order. NESTS is how many (default
 * 300), NESTS_SEED the first one's seed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/nest_plan.h"

#include "lib/shuffled.h"

/* The values do not depend on how the step is run: by a thread that waits, or started, where the
 * thread may compute or not, with values that arrive in some order. */
static int run_step(struct nest *n, struct plan_set *plan, int how, const struct tensor *feeds,
                    struct tensor *fetches)
{
    struct step step = {.number = 1};
    if (how == 0)
        return plan_set_run(plan, &step, feeds, fetches, &n->err);
    struct shuffled_ending ending = {.done = {.done = shuffled_note_end, .computes = how == 1},
                                     .err = &n->err};
    step.rendezvous = shuffled_new(n->seed + (uint64_t)how);
    plan_set_start(plan, &step, feeds, fetches, &ending.done);
    if (!shuffled_finish(step.rendezvous, &ending.is_over))
        fail_msg("NESTS_SEED=%llu: hangs", (unsigned long long)n->seed);
    step.rendezvous->free(step.rendezvous);
    return ending.code;
}

/* Runs three steps in a row: reused memory must behave like new memory. */
static bool run_plan(struct nest *n, struct plan_set *plan, struct variable_store *store)
{
    struct nest_state wanted = n->start, inputs = n->start;
    struct tensor feeds[NEST_SLOTS], fetches[NEST_SLOTS];
    bool equal = true;
    nest_set_variables(store, &n->start);
    for (int i = 0; i < NEST_SLOTS; i++)
        feeds[i] = nest_slot_tensor(&inputs, i);
    for (int run = 0; run < 3 && equal; run++) {
        struct nest_state next = n->start;
        memcpy(next.variable, wanted.variable, sizeof next.variable);
        nest_run(&next, &n->program);
        wanted = next;
        equal = !run_step(n, plan, run, feeds, fetches) && nest_agrees(&wanted, fetches, store);
        for (int i = 0; i < NEST_SLOTS; i++)
            tensor_release(&fetches[i]);
    }
    return equal;
}

static bool run_with(struct nest *n, const struct cut_graph *cut, int threads, bool dynamic)
{
    struct variable_store *store = variable_store_new();
    struct plan_set *set = nest_plan(n, cut, store, threads, dynamic);
    bool equal = set && run_plan(n, set, store);
    plan_set_free(set);
    variable_store_free(store);
    return equal;
}

static bool run_cut(struct nest *n, uint64_t seed, int threads)
{
    struct cut_graph cut;
    cut_place(n->graph, seed, 2 + (int)(seed % (CUT_DEVICES - 1)));
    cut_open(&cut, n->graph);
    bool equal = run_with(n, &cut, threads, true);
    cut_close(&cut);
    return equal;
}

static void fail_nest(const struct nest *n, uint64_t seed, int parallel, int threads,
                      const char *how)
{
    fail_msg("NESTS_SEED=%llu, parallel_iterations %d, %d threads%s: %s", (unsigned long long)seed,
             parallel, threads, how, n->err.code ? n->err.text : "other values");
}

static void check_nest(uint64_t seed)
{
    static const int parallel[] = {1, 2, 10};
    struct nest n = {.seed = seed, .arena = ARENA_INIT};
    n.program = nest_make(seed, &n.arena);
    nest_make_start(&n.start, seed);
    for (int k = 0; k < 3; k++) {
        nest_make_graph(&n, parallel[k], (seed + (uint64_t)k) % 2);
        for (int threads = 1; threads <= 4; threads += 3)
            if (!run_with(&n, NULL, threads, seed % 2 != 0))
                fail_nest(&n, seed, parallel[k], threads, "");
        if (!run_cut(&n, seed, 1 + (int)(seed % 2)))
            fail_nest(&n, seed, parallel[k], 1, ", cut");
        graph_free(n.graph);
    }
    arena_release(&n.arena);
}

static void nests_agree_with_an_interpreter(void **state)
{
    struct seed_range seeds = seeds_of("NESTS", 300);
    (void)state;
    for (int i = 0; i < seeds.n; i++)
        check_nest(seeds.first + (uint64_t)i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nests_agree_with_an_interpreter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
