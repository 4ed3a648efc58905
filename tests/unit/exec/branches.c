/* SPDX-License-Identifier: Apache-2.0
 *
 * Branches in plans with a fixed order: which nodes are skipped, which values are dead, and their
 * memory.
 */
#include "lib/session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "lib/cut.h"
#include "lib/plan_items.h"
#include "lib/random.h"

#define X "x = Placeholder() {dtype=float32, shape=[]}\n"
#define CHOICE                                                                                     \
    X "zero = Const() {dtype=float32, value=0}\n"                                                  \
      "p = Greater(x, zero)\n"                                                                     \
      "s = Switch(x, p)\n"

static bool can_have_branches(void)
{
    return fixture_device()->is_host;
}

/* ---- plans ---- */

static struct plan *plan_of(const struct graph *graph, const char *fetch,
                            struct variable_store *variables)
{
    struct error err = ERROR_INIT;
    struct plan_options options = {
        .kernels = ops_kernels(), .device = fixture_device(), .variables = variables};
    struct tensor value = {.type = FLOAT32};
    struct edge edge, x = {graph_find(graph, "x")->id, 0};
    struct plan_request request = {
        .feeds = &x, .feed_values = &value, .n_feeds = 1, .fetches = &edge, .n_fetches = 1};
    struct plan *plan = NULL;
    if (graph_parse_edge(graph, fetch, &edge, &err) ||
        plan_new(graph, &options, &request, &plan, &err))
        fail_msg("%s", err.text);
    return plan;
}

static int64_t offset_of(const struct plan *plan, const char *name)
{
    const struct item *item = plan_item_named(plan, name);
    assert_non_null(item);
    return plan->values.items[item->out[0]].offset;
}

/* Of values made in two branches of one Merge only one exists; of values for two Merges both may.
 */
static void branches_are_in_one_memory(void **state)
{
    static const char text[] = CHOICE "a = Sin(s)\n"
                                      "b = Cos(s:1)\n"
                                      "c = Exp(s:1)\n"
                                      "m = Merge(a, b)\n"
                                      "k = Merge(a, c)\n"
                                      "y = Add(m, k)\n";
    struct fixture f;
    (void)state;
    if (!can_have_branches())
        return;
    fixture_open(&f, text, false);
    struct variable_store *variables = variable_store_new();
    struct plan *plan = plan_of(f.graph, "y", variables);
    assert_true(plan_is_whole(plan));
    assert_int_equal(offset_of(plan, "a"), offset_of(plan, "b"));
    assert_int_not_equal(offset_of(plan, "c"), offset_of(plan, "b"));
    assert_int_equal(offset_of(plan, "m"), -1);
    plan_free(plan);
    variable_store_free(variables);
    assert_float_equal(fixture_get(&f, "y", 2), cosf(2) + expf(2), 1e-6);
    assert_float_equal(fixture_get(&f, "y", -2), 2 * sinf(-2), 1e-6);
    fixture_close(&f);
}

/* A Merge's output is the memory of its input, which no consumer of both overwrites. */
static void what_is_merged_is_not_overwritten(void **state)
{
    static const char text[] = CHOICE "a = Sin(s)\n"
                                      "b = Cos(s:1)\n"
                                      "m = Merge(a, b)\n"
                                      "t = Switch(m, p)\n"
                                      "y = Mul(b, t:1)\n"
                                      "last = Merge(s, y)\n";
    struct fixture f;
    (void)state;
    if (!can_have_branches())
        return;
    fixture_open(&f, text, false);
    struct variable_store *variables = variable_store_new();
    struct plan *plan = plan_of(f.graph, "last", variables);
    assert_int_not_equal(offset_of(plan, "y"), offset_of(plan, "b"));
    plan_free(plan);
    variable_store_free(variables);
    fixture_close(&f);
}

/* ---- dead values ---- */

static void what_is_dead_cannot_be_fetched(void **state)
{
    (void)state;
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        struct fixture f;
        float x = 1;
        struct tensor feed = tensor_borrow(FLOAT32, &SHAPE_SCALAR, &x), result;
        fixture_open(&f, CHOICE "a = Neg(s)\nb = Neg(s:1)\nm = Merge(a, b)\n", dynamic);
        assert_int_equal(fixture_run(&f, "a", "x", &feed, &result), ERR_DATA);
        assert_string_equal(f.err.text,
                            "a fetched value is dead: it is in a branch that was not taken");
        f.err = (struct error)ERROR_INIT;
        assert_float_equal(fixture_get(&f, "b", 1), -1, 0);
        assert_float_equal(fixture_get(&f, "a", -1), 1, 0);
        assert_float_equal(fixture_get(&f, "m:1", 1), 1, 0);
        assert_float_equal(fixture_get(&f, "m:1", -1), 0, 0);
        fixture_close(&f);
    }
}

/* A constant, a shape and a pivot are dead if their branch is. */
static void constants_are_of_their_branch(void **state)
{
    static const char text[] = CHOICE "five = Const(^t) {dtype=int32, value=5}\n"
                                      "t = Identity(s:1)\n"
                                      "size = Size(s)\n"
                                      "m = Merge(size, five)\n"
                                      "over = ControlTrigger(^five)\n"
                                      "y = Identity(m, ^over)\n"
                                      "z = Identity(x, ^over)\n";
    (void)state;
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        struct fixture f;
        fixture_open(&f, text, dynamic);
        for (int i = 0; i < 2; i++) {
            assert_float_equal(fixture_get(&f, "y", 3), 5, 0);
            assert_float_equal(fixture_get(&f, "y", -3), 1, 0);
            assert_float_equal(fixture_get(&f, "z", -3), -3, 0);
        }
        fixture_close(&f);
    }
}

/* ---- variables ---- */

#define VARIABLES                                                                                  \
    "v = Variable() {dtype=float32, shape=[]}\n"                                                   \
    "lacks = Variable() {dtype=float32, shape=[]}\n"                                               \
    "seven = Const() {dtype=float32, value=7}\n"                                                   \
    "init = Assign(v, seven)\n"

static void effects_are_of_the_branch_taken(void **state)
{
    static const char text[] = CHOICE VARIABLES "add = AssignAdd(v, s:1)\n"
                                                "sub = AssignSub(v, s)\n"
                                                "a = Identity(sub)\n"
                                                "b = Identity(add)\n"
                                                "m = Merge(a, b)\n";
    (void)state;
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        struct fixture f;
        fixture_open(&f, text, dynamic);
        fixture_do(&f, "^init");
        assert_float_equal(fixture_get(&f, "m", 2), 9, 0);
        assert_float_equal(fixture_get(&f, "m", 3), 12, 0);
        assert_float_equal(fixture_get(&f, "m", -4), 16, 0);
        assert_float_equal(fixture_get(&f, "v", NAN), 16, 0);
        fixture_close(&f);
    }
}

/* Branches may pass on variables themselves, also branches of branches. */
static void writes_that_exclude_each_other_are_merged(void **state)
{
    static const char text[] = CHOICE VARIABLES "add = AssignAdd(v, s:1)\n"
                                                "two = Const() {dtype=float32, value=-2}\n"
                                                "q = Greater(s, two)\n"
                                                "ss = Switch(s, q)\n"
                                                "sub = AssignSub(v, ss)\n"
                                                "set = Assign(v, ss:1)\n"
                                                "inner = Merge(sub, set)\n"
                                                "m = Merge(inner, add)\n";
    (void)state;
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        struct fixture f;
        fixture_open(&f, text, dynamic);
        fixture_do(&f, "^init");
        assert_float_equal(fixture_get(&f, "m", 2), 9, 0);
        assert_float_equal(fixture_get(&f, "m", -3), 12, 0);
        assert_float_equal(fixture_get(&f, "m", -1), -1, 0);
        assert_float_equal(fixture_get(&f, "v", NAN), -1, 0);
        fixture_close(&f);
    }
}

/* A Merge passes on the value from before the write. */
static void a_merge_keeps_what_a_variable_was(void **state)
{
    static const char text[] = CHOICE VARIABLES "r = Identity(v)\n"
                                                "vs = Switch(r, p)\n"
                                                "b = Neg(vs:1)\n"
                                                "m = Merge(vs, b)\n"
                                                "add = AssignAdd(v, x, ^m)\n"
                                                "y = Mul(m, x, ^add)\n";
    (void)state;
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        struct fixture f;
        fixture_open(&f, text, dynamic);
        fixture_do(&f, "^init");
        assert_float_equal(fixture_get(&f, "y", -2), -14, 0);
        assert_float_equal(fixture_get(&f, "y", 2), -10, 0);
        assert_float_equal(fixture_get(&f, "v", NAN), 7, 0);
        fixture_close(&f);
    }
}

static void a_branch_not_taken_may_lack_a_value(void **state)
{
    static const char text[] = CHOICE VARIABLES "a = Neg(s)\n"
                                                "b = Add(lacks, s:1)\n"
                                                "m = Merge(a, b)\n";
    (void)state;
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        struct fixture f;
        float x = 1;
        struct tensor feed = tensor_borrow(FLOAT32, &SHAPE_SCALAR, &x), result;
        fixture_open(&f, text, dynamic);
        assert_float_equal(fixture_get(&f, "m", -1), 1, 0);
        assert_int_equal(fixture_run(&f, "m", "x", &feed, &result), ERR_DATA);
        assert_non_null(strstr(f.err.text, "variable 'lacks' is not initialized"));
        fixture_close(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(branches_are_in_one_memory),
        cmocka_unit_test(what_is_merged_is_not_overwritten),
        cmocka_unit_test(what_is_dead_cannot_be_fetched),
        cmocka_unit_test(constants_are_of_their_branch),
        cmocka_unit_test(effects_are_of_the_branch_taken),
        cmocka_unit_test(writes_that_exclude_each_other_are_merged),
        cmocka_unit_test(a_merge_keeps_what_a_variable_was),
        cmocka_unit_test(a_branch_not_taken_may_lack_a_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
