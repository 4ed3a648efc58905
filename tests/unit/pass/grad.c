/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of whole graphs compared with central differences: paths that meet, rows, conditionals,
 * loops.
 */
#include <math.h>
#include <stdio.h>

#include "lib/session.h"
#include "pass/gradient/grad.h"

#define X "x = Placeholder() {dtype=float64, shape=[]}\n"

struct run {
    struct fixture f;
    struct gradient gradient;
};

static struct edge edge_of(struct run *r, const char *name)
{
    struct edge edge;
    if (graph_parse_edge(r->f.graph, name, &edge, &r->f.err))
        fail_msg("%s", r->f.err.text);
    return edge;
}

static int add_gradient(struct run *r, const char *text, const char *y, const char *x)
{
    fixture_open(&r->f, text, false);
    struct edge ys = edge_of(r, y), xs = edge_of(r, x);
    return gradients_add(r->f.graph, &ys, NULL, 1, &xs, 1, NULL, &r->gradient, &r->f.err);
}

static double get(struct run *r, struct edge fetch, double x)
{
    struct edge feed = edge_of(r, "x");
    struct tensor value = tensor_borrow(FLOAT64, &SHAPE_SCALAR, &x), result;
    struct step step = {.number = 1};
    struct plan_request call = {
        .feeds = &feed, .feed_values = &value, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1};
    if (session_run(r->f.session, &call, &step, &result, &r->f.err))
        fail_msg("%s", r->f.err.text);
    double sum = 0;
    for (int64_t i = 0; i < tensor_count(&result); i++)
        sum += tensor_get_float64(&result, i);
    tensor_release(&result);
    return sum;
}

/* The graph with gradients is valid, and survives a trip through text. */
static void check_text(struct run *r)
{
    struct str text = STR_INIT, again = STR_INIT;
    struct graph *copy = NULL;
    if (graph_check(r->f.graph, &r->f.err) ||
        graph_print_text(&text, r->f.graph, NULL, &r->f.err) ||
        graph_parse_text(str_text(&text), text.n, "t", ops_registry(), &copy, &r->f.err) ||
        graph_print_text(&again, copy, NULL, &r->f.err))
        fail_msg("%s", r->f.err.text);
    graph_free(copy);
    str_release(&text);
    str_release(&again);
}

/* Compares dy/dx at some points with (y(x+h) - y(x-h)) / 2h. */
static void expect_derivative(const char *text, const double *points, int n)
{
    struct run r;
    if (add_gradient(&r, text, "y", "x"))
        fail_msg("%s", r.f.err.text);
    struct edge y = edge_of(&r, "y");
    assert_false(edge_exists(r.gradient.indices));
    check_text(&r);
    for (int i = 0; i < n; i++) {
        double x = points[i], h = 1e-5;
        double want = (get(&r, y, x + h) - get(&r, y, x - h)) / (2 * h);
        double got = get(&r, r.gradient.values, x);
        if (!(fabs(got - want) <= 1e-6 * (1 + fabs(want))))
            fail_msg("at %g: %.12g, not %.12g, in\n%s", x, got, want, text);
    }
    fixture_close(&r.f);
}

#define EXPECT(text, ...)                                                                          \
    expect_derivative(text, (double[]){__VA_ARGS__},                                               \
                      (int)(sizeof(double[]){__VA_ARGS__} / sizeof(double)))

static void test_paths_that_meet(void **state)
{
    (void)state;
    EXPECT(X "a = Mul(x, x)\nb = Tanh(a)\nc = Mul(a, b)\nd = Add(c, x)\ny = Add(d, a)\n", 0.5,
           -1.5);
    EXPECT(X "y = Identity(x)\n", 2);
    EXPECT(X "a = StopGradient(x)\nb = Mul(x, x)\ny = Add(b, b)\n", 2, 3);
}

static void test_broadcasting(void **state)
{
    (void)state;
    EXPECT(X "v = Const() {dtype=float64, value=[[1,2,3],[4,5,6]]}\na = Mul(v, x)\nb = Add(x, a)\n"
             "c = Square(b)\nall = Const() {dtype=int32, value=[0,1]}\ny = Sum(c, all)\n",
           0.7, -2);
}

static void test_a_condition_takes_one_branch(void **state)
{
    (void)state;
    const char *text = X "zero = Const() {dtype=float64, value=0}\n"
                         "p = Greater(x, zero)\n"
                         "s = Switch(x, p)\n"
                         "three = Const(^s) {dtype=float64, value=3}\n"
                         "f = Mul(s, three)\n"
                         "t = Mul(s:1, s:1)\n"
                         "m = Merge(f, t)\n"
                         "y = Mul(m, x)\n";
    EXPECT(text, 2, -2);
}

static void test_a_branch_without_gradient(void **state)
{
    (void)state;
    const char *text = X "zero = Const() {dtype=float64, value=0}\n"
                         "p = Greater(x, zero)\n"
                         "s = Switch(x, p)\n"
                         "f = ZerosLike(s)\n"
                         "t = Mul(s:1, s:1)\n"
                         "m = Merge(f, t)\n"
                         "y = Add(m, x)\n";
    EXPECT(text, 2, -2);
}

static void test_nested_conditions(void **state)
{
    (void)state;
    const char *text = X "zero = Const() {dtype=float64, value=0}\n"
                         "one = Const() {dtype=float64, value=1}\n"
                         "p = Greater(x, zero)\n"
                         "q = Greater(x, one)\n"
                         "s = Switch(x, p)\n"
                         "sq = Switch(q, p)\n"
                         "s2 = Switch(s:1, sq:1)\n"
                         "a = Square(s2)\n"
                         "b = Exp(s2:1)\n"
                         "m2 = Merge(a, b)\n"
                         "f = Sin(s)\n"
                         "m = Merge(f, m2)\n"
                         "y = Mul(m, x)\n";
    EXPECT(text, -1, 0.5, 1.5);
}

/* v = x; for i in 0 .. n-1: v = v * v * c + x, where c is a constant of the loop */
#define LOOP(n, parallel)                                                                          \
    X "zero = Const() {dtype=int32, value=0}\n"                                                    \
      "i_enter = Enter(zero) {frame_name=\"w\", parallel_iterations=" parallel "}\n"               \
      "v_enter = Enter(x) {frame_name=\"w\", parallel_iterations=" parallel "}\n"                  \
      "c_value = Mul(x, x)\n"                                                                      \
      "c = Enter(c_value) {frame_name=\"w\", is_constant=true, parallel_iterations=" parallel      \
      "}\n"                                                                                        \
      "i = Merge(i_enter, i_next)\n"                                                               \
      "v = Merge(v_enter, v_next)\n"                                                               \
      "n = Const(^i) {dtype=int32, value=" n "}\n"                                                 \
      "less = Less(i, n)\n"                                                                        \
      "go = LoopCond(less)\n"                                                                      \
      "i_switch = Switch(i, go)\n"                                                                 \
      "v_switch = Switch(v, go)\n"                                                                 \
      "i_body = Identity(i_switch:1)\n"                                                            \
      "v_body = Identity(v_switch:1)\n"                                                            \
      "one = Const(^i_body) {dtype=int32, value=1}\n"                                              \
      "half = Const(^i_body) {dtype=float64, value=0.5}\n"                                         \
      "i_plus = Add(i_body, one)\n"                                                                \
      "square = Mul(v_body, v_body)\n"                                                             \
      "scaled = Mul(square, half)\n"                                                               \
      "v_plus = Add(scaled, c)\n"                                                                  \
      "i_next = NextIteration(i_plus)\n"                                                           \
      "v_next = NextIteration(v_plus)\n"                                                           \
      "i_exit = Exit(i_switch)\n"                                                                  \
      "v_exit = Exit(v_switch)\n"                                                                  \
      "y = Mul(v_exit, x)\n"

static void test_loops(void **state)
{
    (void)state;
    EXPECT(LOOP("4", "10"), 0.3, -0.6);
    EXPECT(LOOP("4", "1"), 0.3, -0.6);
    EXPECT(LOOP("1", "10"), 0.3, -0.6);
    EXPECT(LOOP("0", "10"), 0.3, -0.6);
}

/* In each iteration: v = v > 0.5 ? v * v : v + x; only the live branch is pushed. */
static void test_a_condition_in_a_loop(void **state)
{
    (void)state;
    EXPECT(X "zero = Const() {dtype=int32, value=0}\n"
             "i_enter = Enter(zero) {frame_name=\"w\"}\n"
             "v_enter = Enter(x) {frame_name=\"w\"}\n"
             "c = Enter(x) {frame_name=\"w\", is_constant=true}\n"
             "i = Merge(i_enter, i_next)\n"
             "v = Merge(v_enter, v_next)\n"
             "n = Const(^i) {dtype=int32, value=5}\n"
             "less = Less(i, n)\n"
             "go = LoopCond(less)\n"
             "i_switch = Switch(i, go)\n"
             "v_switch = Switch(v, go)\n"
             "i_body = Identity(i_switch:1)\n"
             "v_body = Identity(v_switch:1)\n"
             "one = Const(^i_body) {dtype=int32, value=1}\n"
             "half = Const(^i_body) {dtype=float64, value=0.5}\n"
             "p = Greater(v_body, half)\n"
             "s = Switch(v_body, p)\n"
             "sc = Switch(c, p)\n"
             "big = Mul(s:1, s:1)\n"
             "small = Mul(s, s)\n"
             "small_c = Add(small, sc)\n"
             "m = Merge(small_c, big)\n"
             "i_plus = Add(i_body, one)\n"
             "i_next = NextIteration(i_plus)\n"
             "v_next = NextIteration(m)\n"
             "v_exit = Exit(v_switch)\n"
             "y = Mul(v_exit, x)\n",
           0.3, 0.9, 0.05);
}

/* The inner loop runs i times in iteration i of the outer one. */
static void test_nested_loops(void **state)
{
    (void)state;
    EXPECT(X "zero = Const() {dtype=int32, value=0}\n"
             "i_enter = Enter(zero) {frame_name=\"o\"}\n"
             "v_enter = Enter(x) {frame_name=\"o\"}\n"
             "c = Enter(x) {frame_name=\"o\", is_constant=true}\n"
             "i = Merge(i_enter, i_next)\n"
             "v = Merge(v_enter, v_next)\n"
             "n = Const(^i) {dtype=int32, value=4}\n"
             "less = Less(i, n)\n"
             "go = LoopCond(less)\n"
             "i_switch = Switch(i, go)\n"
             "v_switch = Switch(v, go)\n"
             "i_body = Identity(i_switch:1)\n"
             "v_body = Identity(v_switch:1)\n"
             "one = Const(^i_body) {dtype=int32, value=1}\n"
             "j0 = Const(^i_body) {dtype=int32, value=0}\n"
             "j_enter = Enter(j0) {frame_name=\"in\"}\n"
             "u_enter = Enter(v_body) {frame_name=\"in\"}\n"
             "limit = Enter(i_body) {frame_name=\"in\", is_constant=true}\n"
             "cc = Enter(c) {frame_name=\"in\", is_constant=true}\n"
             "j = Merge(j_enter, j_next)\n"
             "u = Merge(u_enter, u_next)\n"
             "j_less = Less(j, limit)\n"
             "j_go = LoopCond(j_less)\n"
             "j_switch = Switch(j, j_go)\n"
             "u_switch = Switch(u, j_go)\n"
             "j_body = Identity(j_switch:1)\n"
             "u_body = Identity(u_switch:1)\n"
             "j_one = Const(^j_body) {dtype=int32, value=1}\n"
             "j_plus = Add(j_body, j_one)\n"
             "uu = Mul(u_body, u_body)\n"
             "uc = Add(uu, cc)\n"
             "j_next = NextIteration(j_plus)\n"
             "u_next = NextIteration(uc)\n"
             "u_exit = Exit(u_switch)\n"
             "v_plus = Mul(u_exit, v_body)\n"
             "i_plus = Add(i_body, one)\n"
             "i_next = NextIteration(i_plus)\n"
             "v_next = NextIteration(v_plus)\n"
             "v_exit = Exit(v_switch)\n"
             "y = Add(v_exit, x)\n",
           0.4, 0.9, -0.5);
}

/* b's Exit leads to no y, but b affects a; a's next value does not depend on a. */
static void test_an_exit_that_is_not_used(void **state)
{
    (void)state;
    EXPECT(X "zero = Const() {dtype=int32, value=0}\n"
             "i_enter = Enter(zero) {frame_name=\"w\"}\n"
             "a_enter = Enter(x) {frame_name=\"w\"}\n"
             "b_enter = Enter(x) {frame_name=\"w\"}\n"
             "i = Merge(i_enter, i_next)\n"
             "a = Merge(a_enter, a_next)\n"
             "b = Merge(b_enter, b_next)\n"
             "n = Const(^i) {dtype=int32, value=3}\n"
             "less = Less(i, n)\n"
             "go = LoopCond(less)\n"
             "i_switch = Switch(i, go)\n"
             "a_switch = Switch(a, go)\n"
             "b_switch = Switch(b, go)\n"
             "i_body = Identity(i_switch:1)\n"
             "b_body = Identity(b_switch:1)\n"
             "a_body = Identity(a_switch:1)\n"
             "one = Const(^i_body) {dtype=int32, value=1}\n"
             "i_plus = Add(i_body, one)\n"
             "b_sin = Sin(b_body)\n"
             "b_exp = Exp(b_body)\n"
             "i_next = NextIteration(i_plus)\n"
             "a_next = NextIteration(b_exp)\n"
             "b_next = NextIteration(b_sin)\n"
             "a_exit = Exit(a_switch)\n"
             "y = Mul(a_exit, a_exit)\n",
           0.4, -0.9);
}

static void test_rows_stay_rows(void **state)
{
    (void)state;
    struct run r;
    const char *text = "t = Variable() {dtype=float32, shape=[5,2]}\n"
                       "t/read = Identity(t)\n"
                       "k = Const() {dtype=int32, value=[1,3,1]}\n"
                       "g = Gather(t/read, k)\n"
                       "h = Gather(t/read, k)\n"
                       "s = Add(g, h)\n"
                       "all = Const() {dtype=int32, value=[0,1]}\n"
                       "y = Sum(s, all)\n";
    if (add_gradient(&r, text, "y", "t"))
        fail_msg("%s", r.f.err.text);
    assert_true(edge_exists(r.gradient.indices));
    const struct node *values = graph_node(r.f.graph, r.gradient.values.node);
    assert_string_equal(shape_text(&values->outputs[0].shape), "[6,2]");
    struct build b = {.graph = r.f.graph, .scope = "d", .err = &r.f.err};
    struct edge dense = gradient_dense(&b, &r.gradient, edge_of(&r, "t"));
    struct step step = {.number = 1};
    struct tensor result;
    struct plan_request call = {.fetches = &dense, .n_fetches = 1};
    if (b.err->code || session_run(r.f.session, &call, &step, &result, &r.f.err))
        fail_msg("%s", r.f.err.text);
    struct str out = STR_INIT;
    tensor_print(&out, &result, -1);
    assert_string_equal(str_text(&out), "[[0,0],[4,4],[0,0],[2,2],[0,0]]");
    str_release(&out);
    tensor_release(&result);
    fixture_close(&r.f);
}

static void expect_refused(const char *text, const char *message)
{
    struct run r;
    assert_int_not_equal(add_gradient(&r, text, "y", "x"), 0);
    if (!strstr(r.f.err.text, message))
        fail_msg("'%s' lacks '%s'", r.f.err.text, message);
    fixture_close(&r.f);
}

static void test_what_cannot_be_differentiated(void **state)
{
    (void)state;
    expect_refused(X "y = Const() {dtype=float64, value=1}\n",
                   "no gradient of 'y' to node 'x': 'y' does not depend on it");
    expect_refused(X "a = Floor(x)\ny = Neg(a)\n", "it ends at node 'a', as Floor passes none on");
    expect_refused("x = Placeholder() {dtype=int32}\ny = Neg(x)\n",
                   "must be of a floating-point type, not int32");
}

static void test_only_touched_nodes_get_gradients(void **state)
{
    (void)state;
    struct run r;
    if (add_gradient(&r, X "a = Square(x)\nz = Exp(x)\nb = Sin(z)\ny = Neg(a)\n", "y", "x"))
        fail_msg("%s", r.f.err.text);
    for (size_t i = 0; i < r.f.graph->nodes.n; i++) {
        const char *name = graph_node(r.f.graph, (int)i)->name;
        assert_false(str_starts(name, "gradients/z_grad") || str_starts(name, "gradients/b_grad"));
    }
    fixture_close(&r.f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths_that_meet),
        cmocka_unit_test(test_broadcasting),
        cmocka_unit_test(test_rows_stay_rows),
        cmocka_unit_test(test_what_cannot_be_differentiated),
        cmocka_unit_test(test_only_touched_nodes_get_gradients),
        cmocka_unit_test(test_a_condition_takes_one_branch),
        cmocka_unit_test(test_a_branch_without_gradient),
        cmocka_unit_test(test_nested_conditions),
        cmocka_unit_test(test_loops),
        cmocka_unit_test(test_a_condition_in_a_loop),
        cmocka_unit_test(test_nested_loops),
        cmocka_unit_test(test_an_exit_that_is_not_used),
    };
    return cmocka_run_group_tests_name("grad", tests, NULL, NULL);
}
