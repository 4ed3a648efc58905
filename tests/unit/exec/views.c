/* SPDX-License-Identifier: Apache-2.0
 *
 * Views that a plan resolves: which ones, and that errors stay the same.
 */
#include "lib/session.h"

#include <math.h>
#include <stdio.h>

#include "base/str.h"
#include "exec/plan/fuse.h"
#include "lib/plan_items.h"
#include "lib/unit.h"

/* ---- which are resolved ---- */

#define X "x = Placeholder() {dtype=float32, shape=[3,4]}\n"
#define V "v = Variable() {dtype=float32, shape=[3,4]}\n"
#define P "p = Placeholder() {dtype=bool, shape=[]}\n"
#define TO "to = Const() {dtype=int32, value=[4,3]}\n"
#define ONE "one = Const() {dtype=int32, value=1}\n"

enum { STATIC, DYNAMIC };

static const struct which {
    const char *text, *fetch;
    int n_items[2]; /* without fetches: of a static plan, of a dynamic one; -1: it has async ops */
} which[] = {
    {X "i = Identity(x)\ny = Neg(i)\n", "y", {1, 2}},
    {X "a = Neg(x)\ni = Identity(a)\nk = StopGradient(i)\ny = Neg(k)\n", "y", {2, 2}},
    {X TO "a = Neg(x)\nr = Reshape(a, to)\ny = Neg(r)\n", "y", {2, 2}},
    {X ONE "a = Neg(x)\nr = ExpandDims(a, one)\ns = Squeeze(r)\ny = Neg(s)\n", "y", {2, 2}},
    {X TO "r = Reshape(x, to)\ny = Neg(r)\n", "y", {1, 2}},
    {X "a = Neg(x)\ny = Identity(a)\n", "y", {1, 1}},
    /* a computed operand is checked */
    {X "to = Placeholder() {dtype=int32, shape=[2]}\na = Neg(x)\nr = Reshape(a, to)\n"
       "r2 = Reshape(r, shape)\nshape = Const() {dtype=int32, value=[4,3]}\ny = Neg(r2)\n",
     "y",
     {-1, 4}},
    /* if others may write at any time, a read of a variable is an item of its own */
    {X V "r = Identity(v)\ny = Add(r, x)\n", "y", {1, 2}},
    {V TO "i = Identity(v)\nr = Reshape(i, to)\ny = Neg(r)\n", "y", {1, 2}},
    /* in dynamic plans a control edge also matters */
    {X "n = NoOp()\na = Neg(x)\ni = Identity(a, ^n)\ny = Neg(i)\n", "y", {3, 4}},
    {X "a = Neg(x)\ni = Identity(a)\nb = Exp(x, ^i)\ny = Add(i, b)\n", "y", {3, 4}},
    /* a view without consumers runs */
    {X "a = Neg(x)\ni = Identity(a)\ny = Exp(x, ^i)\n", "y", {3, 3}},
    /* these ops do more */
    {X "c = CheckNumerics(x) {message=\"m\"}\ny = Neg(c)\n", "y", {2, 2}},
    {X "c = Print(x, x) {message=\"m\"}\ny = Neg(c)\n", "y", {2, 2}},
    /* in a fixed order a view that may be dead runs, as others ask whether it is dead */
    {X P "s = Switch(x, p)\ni = Identity(s:1)\na = Neg(i)\nk = Identity(s:0)\nb = Exp(k)\n"
         "m = Merge(a, b)\ny = Neg(m)\n",
     "y",
     {7, 5}},
    {X P "s = Switch(x, p)\na = Identity(s:1)\nb = Identity(s:0)\nm = Merge(a, b)\ny = Neg(m)\n",
     "y",
     {5, 5}},
};

static struct plan *plan_of(const struct which *of, const struct graph *graph,
                            const struct plan_options *options)
{
    struct error err = ERROR_INIT;
    struct edge fetch = {graph_find(graph, of->fetch)->id, 0};
    struct edge feeds[3];
    struct tensor values[3];
    struct plan_request request = {
        .feeds = feeds, .feed_values = values, .fetches = &fetch, .n_fetches = 1};
    struct plan *plan = NULL;
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const struct node *node = graph_node(graph, (int)i);
        if (!node_is(node, "Placeholder"))
            continue;
        feeds[request.n_feeds] = (struct edge){node->id, 0};
        values[request.n_feeds++] =
            tensor_borrow(node->outputs[0].type, &node->outputs[0].shape, NULL);
    }
    if (plan_new(graph, options, &request, &plan, &err))
        fail_msg("%s: %s", of->text, err.text);
    return plan;
}

/* Counts items on the CPU, where nothing is copied. */
static int count_items(const struct which *of, bool dynamic, unsigned without, bool check)
{
    struct fixture f;
    fixture_open(&f, of->text, false);
    struct device_options options = {.threads = 1};
    struct device *device = device_open("CPU", 0, &options, &f.err);
    if (!device)
        fail_msg("%s", f.err.text);
    struct variable_store *variables = variable_store_new();
    struct plan_options planning = {.kernels = ops_kernels(),
                                    .device = device,
                                    .variables = variables,
                                    .without = without,
                                    .check_numerics = check,
                                    .cut = dynamic ? CUT_REGIONS : CUT_WHOLE};
    struct plan *plan = plan_of(of, f.graph, &planning);
    int n_items = plan_count_kernels(plan, "") - plan_count_kernels(plan, "fetch");
    plan_free(plan);
    variable_store_free(variables);
    device_free(device);
    fixture_close(&f);
    return n_items;
}

static void what_only_sees_its_input_does_not_run(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof which / sizeof *which; i++) {
        for (int dynamic = 0; dynamic < 2; dynamic++) {
            int n = which[i].n_items[dynamic];
            int items = n < 0 ? n : count_items(&which[i], dynamic, 1, false);
            if (items != n)
                fail_msg("%s%s: %d items", which[i].text, dynamic ? "dynamic" : "static", items);
        }
    }
}

static void it_can_be_switched_off(void **state)
{
    (void)state;
    assert_int_equal(count_items(&which[1], false, 1u << DEVICE_PASS_VIEWS, false), 4);
    assert_int_equal(count_items(&which[1], false, 0, true), 4); /* check_numerics */
}

/* ---- errors ---- */

/* The error names the read, and nodes that wait for it do not run. */
static void a_variable_without_a_value_is_found_where_it_is_read(void **state)
{
    static const char text[] =
        "v = Variable() {dtype=float32, shape=[2]}\nw = Variable() {dtype=float32, shape=[2]}\n"
        "c = Const() {dtype=float32, value=[1,2]}\nread = Identity(v)\n"
        "set = Assign(w, c, ^read)\ny = Add(read, set)\nsee = Identity(w)\n";
    struct fixture f;
    struct tensor y;
    (void)state;
    fixture_open(&f, text, false);
    assert_int_equal(fixture_run(&f, "y", NULL, NULL, &y), ERR_DATA);
    assert_string_equal(f.err.text, "node 'read': Identity: variable 'v' is not initialized");
    f.err = (struct error)ERROR_INIT;
    assert_int_equal(fixture_run(&f, "see", NULL, NULL, &y), ERR_DATA);
    fixture_close(&f);
}

/* ---- other shapes than were planned ---- */

#define SET(value)                                                                                 \
    "v = Variable() {dtype=float32, shape=[2,3]}\n"                                                \
    "c = Const() {dtype=float32, value=" value "}\n"                                               \
    "set = Assign(v, c) {validate_shape=false}\n"
#define THREE_TWO SET("[[1,2],[3,4],[5,6]]")
#define R6 "to = Const() {dtype=int32, value=[6]}\nr = Reshape(i, to)\n"
#define E0 "zero = Const() {dtype=int32, value=0}\ne = ExpandDims(v, zero)\n"

static const struct seen {
    const char *text, *error; /* NULL: y has 6 elements, the last of which is `last` */
    double last;
} seen[] = {
    {THREE_TWO "i = Identity(v)\n" R6 "y = Neg(r)\n", NULL, -6},
    {SET("[1,2,3,4,5,6]") "i = Identity(v)\n" R6 "y = Identity(r)\n", NULL, 6},
    {THREE_TWO E0 "i = Identity(e)\n" R6 "y = Neg(r)\n", NULL, -6},
    {THREE_TWO E0 "y = Neg(e)\n", "output 0 was planned as [1,2,3], but is [1,3,2]", 0},
    {SET("[1,2]") "i = Identity(v)\n" R6 "y = Neg(r)\n",
     "node 'r': Reshape: 2 elements of shape [2] do not fit shape [6]", 0},
    {SET("[1,2]") "i = Identity(v)\n" R6 "y = Identity(r)\n",
     "node 'r': Reshape: 2 elements of shape [2] do not fit shape [6]", 0},
    /* in a fixed order a Switch runs, which passes on what it is given */
    {SET("[1,2]") "t = Const() {dtype=bool, value=true}\ns = Switch(v, t)\na = Neg(s:1)\n"
                  "y = Merge(a, s:0)\n",
     "was planned as [2,3], but is [2]", 0},
    {SET("[1,2]") "t = Const() {dtype=bool, value=true}\ns = Switch(v, t)\ni = Identity(s:1)\n"
                  "a = Neg(i)\ny = Merge(a, s:0)\n",
     "was planned as [2,3], but is [2]", 0},
};

/* Only the shape of the view counts, and its own node is named. */
static void a_view_of_another_shape_is_as_if_it_ran(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++)
        for (int dynamic = 0; dynamic < 2; dynamic++) {
            struct fixture f;
            struct tensor y = TENSOR_INIT;
            fixture_open(&f, seen[i].text, dynamic);
            fixture_do(&f, "^set");
            int code = fixture_run(&f, "y", NULL, NULL, &y);
            if (seen[i].error ? !strstr(f.err.text, seen[i].error)
                              : code || tensor_get_float64(&y, 5) != seen[i].last)
                fail_msg("%zu, %s: %s", i, dynamic ? "dynamic" : "static", f.err.text);
            tensor_release(&y);
            fixture_close(&f);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_only_sees_its_input_does_not_run),
        cmocka_unit_test(it_can_be_switched_off),
        cmocka_unit_test(a_variable_without_a_value_is_found_where_it_is_read),
        cmocka_unit_test(a_view_of_another_shape_is_as_if_it_ran),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
