/* SPDX-License-Identifier: Apache-2.0
 *
 * Random nests of conditionals and loops agree with an interpreter that knows no graphs. NESTS is
 * how many (default 300), NESTS_SEED the first one's seed. So they do when they are cut over
 * several devices, in whatever order values arrive.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/device/queue.h"
#include "lib/session.h"

#include "lib/cut.h"
#include "lib/nest_graph.h"
#include "lib/shuffled.h"

struct nest {
    uint64_t seed;
    struct arena arena;
    struct nest_block program;
    struct nest_state start;
    struct graph *graph;
    struct edge feeds[NEST_SLOTS], results[NEST_SLOTS];
    int target; /* after all effects */
    struct error err;
};

static enum dtype slot_type(int slot)
{
    return nest_is_whole(slot) ? INT32 : FLOAT32;
}

static struct shape slot_shape(int slot)
{
    return slot < NEST_INTS ? SHAPE_SCALAR : shape_vector(NEST_LENGTH);
}

static struct tensor slot_tensor(struct nest_state *s, int slot)
{
    struct shape shape = slot_shape(slot);
    return tensor_borrow(slot_type(slot), &shape,
                         nest_is_whole(slot) ? (void *)&s->whole[slot] : s->number[slot]);
}

static void make_start(struct nest_state *s, uint64_t seed)
{
    memset(s, 0, sizeof *s);
    for (int i = 0; i < NEST_SLOTS; i++) {
        for (int e = 0; e < (i < NEST_INTS ? 1 : NEST_LENGTH); e++)
            s->number[i][e] = (float)(unit_random(&seed) % 17) / 4 - 2;
        s->whole[i] = (int32_t)(unit_random(&seed) % 7) - 3;
    }
    for (int i = 0; i < NEST_VARIABLES; i++)
        s->variable[i] = (float)(i + 1);
}

static void add_inputs(struct nest *n, struct nest_lowering *l, struct nest_place *outside)
{
    for (int i = 0; i < NEST_SLOTS; i++) {
        struct shape shape = slot_shape(i);
        struct attr attrs[] = {{"dtype", attr_type(slot_type(i))}, {"shape", attr_shape(&shape)}};
        n->feeds[i] = build_op(&l->build, "Placeholder", NULL, 0, attrs, 2);
        nest_bind(l, outside, i, n->feeds[i]);
    }
    nest_bind(l, outside, NEST_TOKEN, nest_constant(l, outside, NEST_TOKEN, 0));
    struct attr attrs[] = {{"dtype", attr_type(FLOAT32)}, {"shape", attr_shape(&SHAPE_SCALAR)}};
    for (int i = 0; i < NEST_VARIABLES; i++)
        l->variables[i] = build_op(&l->build, "Variable", NULL, 0, attrs, 2);
}

static void make_graph(struct nest *n, int parallel_iterations, bool loose)
{
    n->graph = graph_new(ops_registry());
    struct nest_lowering l = {.build = {.graph = n->graph, .err = &n->err},
                              .parallel_iterations = parallel_iterations,
                              .loose = loose};
    struct nest_place outside = {.pivot = -1};
    add_inputs(n, &l, &outside);
    nest_lower(&l, &outside, &n->program);
    for (int i = 0; i < NEST_SLOTS; i++)
        n->results[i] = build_unary(&l.build, "Identity", l.slots[i].edge);
    nest_run_after(&l, &l.slots[NEST_TOKEN].edge.node);
    n->target = build_op(&l.build, "NoOp", NULL, 0, NULL, 0).node;
    if (l.build.failed || graph_infer(n->graph, &n->err) || graph_check(n->graph, &n->err))
        fail_msg("%s", n->err.text);
}

/* Variables as the plan finds them; afterwards their values, for comparison. */
static struct variable *variable_of(struct variable_store *store, int i)
{
    struct variable like = {.container = "default",
                            .name = i ? "Variable_1" : "Variable",
                            .type = FLOAT32,
                            .shape = SHAPE_SCALAR,
                            .device = fixture_device()};
    struct variable *variable;
    struct error err;
    assert_int_equal(variable_store_get(store, &like, &variable, &err), 0);
    return variable;
}

static void set_variables(struct variable_store *store, const struct nest_state *s)
{
    struct error err;
    for (int i = 0; i < NEST_VARIABLES; i++) {
        struct variable *variable = variable_of(store, i);
        assert_int_equal(variable_prepare_write(variable, &SHAPE_SCALAR, VARIABLE_UPDATE, &err), 0);
        struct device *device = variable->device;
        assert_int_equal(device_write(device, variable->value.data, &s->variable[i],
                                      sizeof s->variable[i], &err),
                         0);
        variable_written(variable);
    }
}

static float get_variable(struct variable_store *store, int i)
{
    struct variable *variable = variable_of(store, i);
    struct device *device = variable->device;
    struct error err;
    float value;
    assert_int_equal(device_read(device, &value, variable->value.data, sizeof value, &err), 0);
    return value;
}

static bool same(float a, float b)
{
    return a == b || (a != a && b != b);
}

static bool agrees(const struct nest_state *wanted, const struct tensor *got,
                   struct variable_store *store)
{
    bool equal = true;
    for (int i = 0; i < NEST_SLOTS; i++) {
        if (nest_is_whole(i))
            equal = equal && *(const int32_t *)got[i].data == wanted->whole[i];
        for (int e = 0; !nest_is_whole(i) && e < (i < NEST_INTS ? 1 : NEST_LENGTH); e++)
            equal = equal && same(((const float *)got[i].data)[e], wanted->number[i][e]);
    }
    for (int i = 0; i < NEST_VARIABLES; i++)
        equal = equal && same(get_variable(store, i), wanted->variable[i]);
    return equal;
}

struct ending {
    struct step_done done; /* first */
    atomic_bool is_over;
    int code;
    struct error *err;
};

static void note_end(struct step_done *done, int code, const struct error *err)
{
    struct ending *ending = (struct ending *)done;
    ending->code = code;
    if (code)
        *ending->err = *err;
    atomic_store(&ending->is_over, true);
}

/* However a step is run the values are the same: by a thread that waits, or started, which may
 * compute or not, with values that arrive in some order. */
static int run_step(struct nest *n, struct plan_set *plan, int how, const struct tensor *feeds,
                    struct tensor *fetches)
{
    struct step step = {.number = 1};
    if (how == 0)
        return plan_set_run(plan, &step, feeds, fetches, &n->err);
    struct ending ending = {.done = {.done = note_end, .computes = how == 1}, .err = &n->err};
    step.rendezvous = shuffled_new(n->seed + (uint64_t)how);
    plan_set_start(plan, &step, feeds, fetches, &ending.done);
    if (!shuffled_finish(step.rendezvous, &ending.is_over))
        fail_msg("NESTS_SEED=%llu: hangs", (unsigned long long)n->seed);
    step.rendezvous->free(step.rendezvous);
    return ending.code;
}

/* Three steps in a row: memory that is used again must be as good as new. */
static bool run_plan(struct nest *n, struct plan_set *plan, struct variable_store *store)
{
    struct nest_state wanted = n->start, inputs = n->start;
    struct tensor feeds[NEST_SLOTS], fetches[NEST_SLOTS];
    bool equal = true;
    set_variables(store, &n->start);
    for (int i = 0; i < NEST_SLOTS; i++)
        feeds[i] = slot_tensor(&inputs, i);
    for (int run = 0; run < 3 && equal; run++) {
        struct nest_state next = n->start;
        memcpy(next.variable, wanted.variable, sizeof next.variable);
        nest_run(&next, &n->program);
        wanted = next;
        equal = !run_step(n, plan, run, feeds, fetches) && agrees(&wanted, fetches, store);
        for (int i = 0; i < NEST_SLOTS; i++)
            tensor_release(&fetches[i]);
    }
    return equal;
}

/* On the devices if the graph was cut, else on one. */
static bool run_with(struct nest *n, const struct cut_graph *cut, int threads, bool dynamic)
{
    struct variable_store *store = variable_store_new();
    struct plan_feed feeds[NEST_SLOTS];
    struct edge results[NEST_SLOTS];
    int target = cut ? cut_edge(cut, n->graph, (struct edge){n->target, 0}).node : n->target;
    for (int i = 0; i < NEST_SLOTS; i++) {
        struct edge feed = cut ? cut_edge(cut, n->graph, n->feeds[i]) : n->feeds[i];
        results[i] = cut ? cut_edge(cut, n->graph, n->results[i]) : n->results[i];
        feeds[i] = (struct plan_feed){feed, slot_type(i), slot_shape(i)};
    }
    struct plan_set_options options = {.plan = {.kernels = ops_kernels(),
                                                .device = fixture_device(),
                                                .variables = store,
                                                .threads = threads,
                                                .dynamic = dynamic,
                                                .spread = threads > 1},
                                       .devices = cut_devices(),
                                       .n_devices = cut ? CUT_DEVICES : 0};
    struct plan_request request = {.feeds = feeds,
                                   .n_feeds = NEST_SLOTS,
                                   .fetches = results,
                                   .n_fetches = NEST_SLOTS,
                                   .targets = &target,
                                   .n_targets = 1};
    struct plan_set *set;
    bool equal = !plan_set_new(cut ? cut->joined : n->graph, &options, &request, &set, &n->err) &&
                 run_plan(n, set, store);
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
    make_start(&n.start, seed);
    for (int k = 0; k < 3; k++) {
        make_graph(&n, parallel[k], (seed + (uint64_t)k) % 2);
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
