/* SPDX-License-Identifier: Apache-2.0
 *
 * Regions of dynamic plans: which there are, and that they change no bit. REGIONS is how many
 * random graphs (default 300), REGIONS_SEED the first one's seed.
 */
#include "lib/session.h"

#include <stdlib.h>

#include "exec/plan/fuse.h"
#include "graph/build.h"
#include "lib/cut.h"
#include "lib/plan_items.h"
#include "lib/random_graph.h"

#define NODES_MAX 40

/* ---- the plan of a graph ---- */

static struct plan *plan_of(struct fixture *f, const char *text, const char *fetch)
{
    struct error err = ERROR_INIT;
    struct plan *plan;
    fixture_open(f, text, true);
    struct plan_options options = {.kernels = ops_kernels(),
                                   .device = cut_devices()[0],
                                   .variables = session_variables(f->session),
                                   .cut = CUT_REGIONS,
                                   .without = DEVICE_PASSES_ALL};
    struct edge edge = {graph_find(f->graph, fetch)->id, 0};
    struct plan_request request = {.fetches = &edge, .n_fetches = 1};
    if (plan_new(f->graph, &options, &request, &plan, &err))
        fail_msg("%s", err.text);
    return plan;
}

static int region_of(const struct plan *plan, const char *name)
{
    const struct item *item = plan_item_named(plan, name);
    assert_non_null(item);
    return plan->regions.items[item->region].rank;
}

#define LOOP                                                                                       \
    "i0 = Variable() {dtype=int32, shape=[]}\n"                                                    \
    "enter = Enter(i0) {frame_name=\"f\"}\n"                                                       \
    "merge = Merge(enter, next)\n"                                                                 \
    "ten = Const(^merge) {dtype=int32, value=10}\n"                                                \
    "less = Less(merge, ten)\n"                                                                    \
    "cond = LoopCond(less)\n"                                                                      \
    "switch = Switch(merge, cond)\n"                                                               \
    "one = Const(^switch) {dtype=int32, value=1}\n"                                                \
    "add = Add(switch:1, one)\n"                                                                   \
    "next = NextIteration(add)\n"                                                                  \
    "exit = Exit(switch)\n"

/* Nodes outside a loop have a fixed order of their own, and reuse memory. */
static void a_loop_slows_nothing_outside(void **state)
{
    struct str text = STR_INIT;
    struct fixture f;
    (void)state;
    str_append(&text, LOOP "v = Variable() {dtype=float32, shape=[1000]}\nn0 = Neg(v)\n");
    for (int i = 1; i < 20; i++)
        str_printf(&text, "n%d = %s(n%d)\n", i, i % 2 ? "Exp" : "Neg", i - 1);
    str_append(&text, "f = Cast(exit) {SrcT=int32, DstT=float32}\ny = Mul(n19, f)\n");
    struct plan *plan = plan_of(&f, str_text(&text), "y");
    int first = region_of(plan, "n0");
    assert_true(first >= 0);
    for (int i = 1; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        assert_int_equal(region_of(plan, name), first);
    }
    assert_true(region_of(plan, "y") > first);
    assert_int_equal(region_of(plan, "y"), region_of(plan, "f"));
    assert_int_equal(region_of(plan, "switch"), -1);
    assert_true(region_of(plan, "less") != region_of(plan, "add"));
    assert_true(plan->frames.items[FRAME_ROOT].arena_bytes[0] < 3 * 4096);
    plan_free(plan);
    fixture_close(&f);
    str_release(&text);
}

/* A constant that only kernels take needs no copy in each iteration, and splits no region; a
 * constant that is merged is an item. */
static void constants_are_of_their_regions(void **state)
{
    struct fixture f;
    (void)state;
    struct plan *plan = plan_of(&f,
                                LOOP "p = Variable() {dtype=bool, shape=[]}\n"
                                     "s = Switch(exit, p)\n"
                                     "i = Identity(s:1)\n"
                                     "two = Const(^i) {dtype=int32, value=2}\n"
                                     "three = Const(^i) {dtype=int32, value=3}\n"
                                     "t = Mul(s:1, two)\n"
                                     "t2 = Add(t, two)\n"
                                     "m = Merge(s, three)\n"
                                     "y = Add(m, t2)\n",
                                "y");
    assert_false(plan_item_named(plan, "ten") || plan_item_named(plan, "one") ||
                 plan_item_named(plan, "two"));
    assert_true(plan_item_named(plan, "three"));
    assert_true(region_of(plan, "t") >= 0);
    assert_int_equal(region_of(plan, "t"), region_of(plan, "t2"));
    plan_free(plan);
    fixture_close(&f);
}

/* Branches that exclude each other are two regions, and neither is part of the one before. */
static void a_branch_is_a_region(void **state)
{
    struct fixture f;
    (void)state;
    struct plan *plan = plan_of(&f,
                                "p = Variable() {dtype=bool, shape=[]}\n"
                                "x = Variable() {dtype=float32, shape=[3]}\n"
                                "a = Neg(x)\n"
                                "s = Switch(a, p)\n"
                                "t = Exp(s:1)\n"
                                "t2 = Neg(t)\n"
                                "e = Abs(s)\n"
                                "m = Merge(t2, e)\n"
                                "y = Neg(m)\n",
                                "y");
    int then = region_of(plan, "t"), other = region_of(plan, "e"), before = region_of(plan, "a");
    assert_int_equal(region_of(plan, "t2"), then);
    assert_true(then != other && then != before && other != before);
    assert_true(then >= 0 && other >= 0 && before >= 0 && region_of(plan, "y") >= 0);
    plan_free(plan);
    fixture_close(&f);
}

/* ---- NoOps ---- */

#define NOTHINGS 50000

/* Its consumers run at once, from a list: the stack does not grow with their number. */
static void a_chain_of_nothing_needs_no_stack(void **state)
{
    struct error err = ERROR_INIT;
    struct graph *graph = graph_new(ops_registry());
    struct build build = {.graph = graph, .err = &err};
    (void)state;
    for (int i = 0, last = -1; i < NOTHINGS; i++) {
        build.controls = &last;
        build.n_controls = i > 0;
        last = build_op(&build, "NoOp", NULL, 0, NULL, 0).node;
    }
    struct plan_options options = {
        .kernels = ops_kernels(), .device = cut_devices()[0], .cut = CUT_ITEMS};
    int target = (int)graph->nodes.n - 1;
    struct plan_request request = {.targets = &target, .n_targets = 1};
    struct step step = {.number = 1};
    struct tensor none;
    struct plan *plan;
    options.variables = variable_store_new();
    assert_int_equal(plan_new(graph, &options, &request, &plan, &err), 0);
    assert_int_equal(plan_run(plan, &step, NULL, &none, &err), 0);
    assert_int_equal(plan_run(plan, &step, NULL, &none, &err), 0);
    plan_free(plan);
    variable_store_free(options.variables);
    graph_free(graph);
}

/* In a branch that is not taken, a NoOp is dead, as are nodes that wait for it. */
static void nothing_is_dead_where_its_branch_is(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f,
                 "x = Placeholder() {dtype=float32, shape=[]}\n"
                 "zero = Const() {dtype=float32, value=0}\n"
                 "p = Greater(x, zero)\n"
                 "s = Switch(x, p)\n"
                 "i = Identity(s)\n"
                 "none = NoOp(^i)\n"
                 "none2 = NoOp(^none)\n"
                 "e = Neg(x, ^none2)\n"
                 "m = Merge(e, s:1)\n"
                 "y = Neg(m)\n",
                 true);
    for (int k = 0; k < 4; k++) {
        float x = (float)(k % 2 ? k : -k) - 0.5f;
        assert_true(fixture_get(&f, "y", x) == (x > 0 ? -x : x));
    }
    fixture_close(&f);
}

/* ---- bits ---- */

static int run(const struct graph *graph, struct edge fetch, enum plan_cut cut,
               struct tensor *value, struct error *err)
{
    struct session_options options = {
        .plan = {.kernels = ops_kernels(), .device = cut_devices()[0], .cut = cut}};
    struct session *session = session_new(graph, &options);
    struct step step = {.number = 1};
    struct plan_request call = {.fetches = &fetch, .n_fetches = 1};
    int code = session_run(session, &call, &step, value, err);
    session_free(session);
    return code;
}

static bool check_fetch(const struct graph *graph, struct edge edge, uint64_t seed)
{
    struct error err = ERROR_INIT, other_err = ERROR_INIT;
    struct tensor value = TENSOR_INIT, other = TENSOR_INIT;
    int code = run(graph, edge, CUT_REGIONS, &value, &err);
    int other_code = run(graph, edge, CUT_ITEMS, &other, &other_err);
    const char *name = graph_node(graph, edge.node)->name;
    if (code != other_code)
        fail_msg("REGIONS_SEED=%llu: %s: %s / %s", (unsigned long long)seed, name, err.text,
                 other_err.text);
    if (!code && !same_bits(&value, &other))
        fail_msg("REGIONS_SEED=%llu: %s: other values", (unsigned long long)seed, name);
    tensor_release(&value);
    tensor_release(&other);
    return !code;
}

static int check_random(uint64_t seed)
{
    struct graph *graph =
        random_graph(ops_registry(), seed, 2 + (int)(seed % NODES_MAX), OP_SOURCE, true);
    int n = 0, n_values = 0;
    random_graph_add_controls(graph, seed);
    for (size_t i = 0; !random_graph_may_wait(graph) && i < graph->nodes.n && n < 3; i++) {
        const struct node *node = graph_node(graph, (int)(graph->nodes.n - 1 - i));
        if (node->n_outputs && !node->outputs[0].is_ref && node->n_inputs) {
            n_values += check_fetch(graph, (struct edge){node->id, 0}, seed);
            n++;
        }
    }
    graph_free(graph);
    return n_values;
}

static void regions_change_no_bit(void **state)
{
    struct seed_range seeds = seeds_of("REGIONS", 300);
    int n = 0;
    (void)state;
    for (int i = 0; i < seeds.n; i++)
        n += check_random(seeds.first + (uint64_t)i);
    assert_true(seeds.given || n > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_slows_nothing_outside),
        cmocka_unit_test(constants_are_of_their_regions),
        cmocka_unit_test(a_branch_is_a_region),
        cmocka_unit_test(a_chain_of_nothing_needs_no_stack),
        cmocka_unit_test(nothing_is_dead_where_its_branch_is),
        cmocka_unit_test(regions_change_no_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
