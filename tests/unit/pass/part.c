/* SPDX-License-Identifier: Apache-2.0
 *
 * The form of a graph's parts, and graphs that cannot be cut. part_random.c tests what the parts
 * compute.
 */
#include "lib/session.h"

#include <math.h>
#include <stdio.h>

#include "lib/cut.h"

#define ON(n) " @/job:localhost/task:0/device:CPU:" #n "\n"

struct small {
    struct fixture whole;
    struct cut_graph cut;
    struct session *session;
};

static void open_small(struct small *s, const char *text)
{
    fixture_open(&s->whole, text, false);
    cut_rename(s->whole.graph);
    cut_open(&s->cut, s->whole.graph);
    struct session_options options = {.plan = {.kernels = ops_kernels(), .threads = 1},
                                      .devices = cut_devices(),
                                      .n_devices = CUT_DEVICES};
    s->session = session_new(s->cut.joined, &options);
}

static void close_small(struct small *s)
{
    session_free(s->session);
    cut_close(&s->cut);
    fixture_close(&s->whole);
}

static int run_small(struct small *s, const char *what, double *value)
{
    struct edge edge;
    struct tensor result = TENSOR_INIT;
    struct step step = {.number = 1};
    error_clear(&s->whole.err);
    assert_int_equal(graph_parse_edge(s->cut.joined, what, &edge, &s->whole.err), 0);
    bool target = edge.slot == CONTROL_SLOT;
    struct plan_request call = {
        .fetches = &edge, .n_fetches = !target, .targets = &edge.node, .n_targets = target};
    int code = session_run(s->session, &call, &step, &result, &s->whole.err);
    if (!code && !target)
        *value = tensor_get_float64(&result, 0);
    tensor_release(&result);
    return code;
}

static double get(struct small *s, const char *fetch)
{
    double value = 0;
    if (run_small(s, fetch, &value))
        fail_msg("%s", s->whole.err.text);
    return value;
}

static int count(const struct graph *graph, const char *op)
{
    int n = 0;
    for (size_t i = 0; i < graph->nodes.n; i++)
        n += node_is(graph_node(graph, (int)i), op);
    return n;
}

static void a_value_crosses_once(void **state)
{
    struct small s;
    (void)state;
    open_small(
        &s, "k = Const() {dtype=float32, value=3}" ON(0) "x = Abs(k)" ON(0) "a = Neg(x)" ON(
                1) "b = Square(x)" ON(1) "c = Add(a, b)" ON(1) "d = Square(x)" ON(2) "e = Sub(c, "
                                                                                     "d)" ON(0));
    assert_int_equal(count(s.cut.joined, "Send"), 4); /* x to 1 and 2, c and d to 0 */
    assert_int_equal(count(s.cut.joined, "Recv"), 4);
    assert_int_equal(s.cut.parts.crossings.n, 4);
    assert_int_equal(s.cut.parts.parts.n, 3);
    assert_true(get(&s, "e") == -3);
    close_small(&s);
}

static void a_constant_does_not_cross(void **state)
{
    struct small s;
    (void)state;
    open_small(&s, "k = Const() {dtype=float32, value=3}" ON(0) "a = Neg(k)" ON(1) "b = Abs(k)" ON(
                       1) "c = Add(a, b)" ON(1) "d = Add(k, k)" ON(0));
    assert_int_equal(count(s.cut.joined, "Send"), 0);
    assert_int_equal(count(s.cut.joined, "Const"), 2);
    assert_true(get(&s, "c") == 0);
    assert_true(get(&s, "d") == 6);
    close_small(&s);
}

/* A sum along no axis has its input's bits, also if the axes come from another device and are
 * unknown before the step. */
static void axes_that_cross_change_no_bits(void **state)
{
    static const char *const ops[] = {"Sum", "Mean", "Prod"};
    char text[512];
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct small s;
        snprintf(
            text, sizeof text,
            "zero = Const() {dtype=float32, value=0}" ON(0) "x = Neg(zero)" ON(
                0) "axes = Shape(x)" ON(1) "here = %s(x, axes)" ON(1) "there = %s(x, axes)" ON(0),
            ops[i], ops[i]);
        open_small(&s, text);
        assert_true(signbit(get(&s, "here")));
        assert_true(signbit(get(&s, "there")));
        close_small(&s);
    }
}

/* u and w are one crossing; w comes after v, so its arrival shows that v is over. */
static void control_edges_cross_as_one(void **state)
{
    struct small s;
    (void)state;
    open_small(&s,
               "one = Const() {dtype=float32, value=1}" ON(
                   0) "a = Variable() {dtype=float32, "
                      "shape=[]}" ON(
                          0) "b = Variable() "
                             "{dtype=float32, "
                             "shape=[]}" ON(0) "u = Assign(a, one)" ON(0) "v = Assign(b, one)" ON(
                                 0) "w = "
                                    "AssignAdd("
                                    "b, one, "
                                    "^v)" ON(0) "end = NoOp(^u, ^v, ^w)" ON(1));
    assert_int_equal(count(s.cut.joined, "Send"), 1);
    assert_int_equal(s.cut.parts.crossings.items[0].n_also, 1);
    assert_int_equal(run_small(&s, "^end", NULL), 0);
    assert_true(get(&s, "a") == 1);
    assert_true(get(&s, "b") == 2);
    close_small(&s);
}

/* To nearest even; values exact in 16 bits stay, and a NaN stays a NaN. */
static void values_cross_in_16_bits(void **state)
{
    static const double sent[] = {1, 1.00390625, 1.01171875, -3.1415927, 65280, NAN};
    static const double bf16[] = {1, 1, 1.015625, -3.140625, 65280, NAN};
    static const double fp16[] = {1, 1.00390625, 1.01171875, -3.140625, 65280, NAN};
    (void)state;
    for (size_t i = 0; i < sizeof sent / sizeof *sent; i++)
        for (int narrow = 0; narrow < 2; narrow++) {
            struct small s;
            char text[512];
            snprintf(text, sizeof text,
                     "c = Const() {dtype=float32, value=%.9g}" ON(0) "x = Neg(c) {_wire=%s}" ON(
                         0) "y = Neg(x)" ON(1) "z = Neg(x)" ON(0),
                     sent[i], narrow ? "bfloat16" : "float16");
            open_small(&s, text);
            double expected = narrow ? bf16[i] : fp16[i], got = get(&s, "y");
            assert_true(got == expected || (isnan(got) && isnan(expected)));
            got = get(&s, "z"); /* on its own device it has all its bits */
            assert_true((float)got == (float)sent[i] || isnan(got));
            assert_int_equal(s.cut.parts.crossings.items[0].bytes, 2);
            close_small(&s);
        }
}

#define VARIABLE                                                                                   \
    "v = Variable() {dtype=float32, shape=[]}" ON(0) "one = Const() {dtype=float32, value=1}" ON(  \
        1) "init = Assign(v, one)" ON(0)

static void control_edges_order_effects(void **state)
{
    struct small s;
    (void)state;
    /* clang-format off */
    open_small(&s, VARIABLE
               "w = Variable() {dtype=float32, shape=[]}" ON(1)
               "init_w = Assign(w, one)" ON(1)
               "u = AssignAdd(v, one)" ON(0)
               "u_w = AssignAdd(w, one, ^u)" ON(1)
               "early = Neg(v)" ON(2)
               "late = Neg(v, ^u)" ON(2)
               "later = Identity(v, ^u_w)" ON(0)
               "all = AddN(early, late, later)" ON(3));
    /* clang-format on */
    for (int i = 0; i < 20; i++) {
        assert_int_equal(run_small(&s, "^init", NULL), 0);
        assert_int_equal(run_small(&s, "^init_w", NULL), 0);
        assert_true(get(&s, "all") == -1 - 2 + 2);
        assert_true(get(&s, "early") == -2); /* v is 2 now, and only needed nodes run */
    }
    close_small(&s);
}

static void a_failure_ends_all_parts(void **state)
{
    struct small s;
    double value;
    (void)state;
    open_small(&s, "x = Const() {dtype=float32, value=nan}" ON(
                       0) "bad = CheckNumerics(x) {message=\"of "
                          "x\"}" ON(1) "y = Neg(bad)" ON(2) "z = Abs(y)" ON(3));
    for (int i = 0; i < 20; i++) {
        assert_int_equal(run_small(&s, "z", &value), ERR_DATA);
        assert_non_null(strstr(s.whole.err.text, "node 'bad'"));
        assert_null(strstr(s.whole.err.text, "Recv"));
    }
    close_small(&s);
}

/* Returns the node that the Recv of a MiB waits for, over a link of that bandwidth: the value is
 * needed 50 ms after the step's start, and its travel time is kept once more as a margin. */
static const char *received_after(const struct graph *graph, const char *bandwidth)
{
    struct cluster cluster = {0};
    struct costs costs = {.arena = ARENA_INIT};
    struct parts parts;
    struct error err = ERROR_INIT;
    char text[200];
    snprintf(text, sizeof text, "task a:0 unix:a\ntask b:0 unix:b\nlink a:0 b:0 bandwidth=%s\n",
             bandwidth);
    struct part_estimates estimates = {&cluster, &costs};
    if (cluster_parse(&cluster, text, "c", &err) ||
        costs_parse(&costs, "op Neg 10000000\nop Abs 0\n", "f", &err) ||
        part_graph(graph, &estimates, &parts, &err))
        fail_msg("%s", err.text);
    assert_int_equal(parts.crossings.n, 1);
    const struct part_crossing *crossing = parts.crossings.items;
    const struct node *recv = graph_node(parts.parts.items[crossing->to].graph, crossing->recv);
    const struct attr_value *after = node_attr(recv, "_after");
    const struct node *wait = after ? graph_find(graph, after->strings[0]) : NULL;
    parts_release(&parts);
    costs_release(&costs);
    cluster_release(&cluster);
    return wait ? wait->name : "";
}

static void a_value_is_received_as_late_as_its_link_allows(void **state)
{
    struct fixture f;
    (void)state;
    /* clang-format off */
#define ON_TASK(task) " @/job:" task "/task:0/device:CPU:0\n"
    fixture_open(&f, "x = Placeholder() {dtype=float32, shape=[512,512]}" ON_TASK("a")
                     "v = Abs(x)" ON_TASK("a")
                     "p = Placeholder() {dtype=float32, shape=[]}" ON_TASK("b")
                     "n1 = Neg(p)" ON_TASK("b") "n2 = Neg(n1)" ON_TASK("b")
                     "n3 = Neg(n2)" ON_TASK("b") "n4 = Neg(n3)" ON_TASK("b")
                     "n5 = Neg(n4)" ON_TASK("b") "use = Neg(v, ^n5)" ON_TASK("b"), false);
    /* clang-format on */
    assert_string_equal(received_after(f.graph, "1G"), "n4");
    assert_string_equal(received_after(f.graph, "200M"), "n3");
    assert_string_equal(received_after(f.graph, "100M"), "n2");
    assert_string_equal(received_after(f.graph, "60M"), "n1");
    assert_string_equal(received_after(f.graph, "40M"), "");
    fixture_close(&f);
}

/* Prints which Sends are grouped: "a b, d e", one group each. */
static void print_groups(const struct parts *parts, struct str *out)
{
    const char *last = "";
    for (size_t i = 0; i < parts->crossings.n; i++) {
        const struct part_crossing *crossing = &parts->crossings.items[i];
        const struct node *recv =
            graph_node(parts->parts.items[crossing->to].graph, crossing->recv);
        const struct graph *from = parts->parts.items[crossing->from].graph;
        const struct node *send = graph_find(from, node_string(recv, "tensor_name"));
        const char *group = node_group(recv);
        if (!group) {
            assert_null(node_group(send));
            continue;
        }
        assert_string_equal(node_group(send), group);
        str_printf(out, "%s%s",
                   !out->n               ? ""
                   : strcmp(group, last) ? ", "
                                         : " ",
                   graph_node(from, send->inputs[0].node)->name);
        last = group;
    }
}

/* A value that is large, or comes after a write, control flow or a member's contribution, is in no
 * group; a value that comes back is in a later one. */
static void small_values_cross_together(void **state)
{
    struct fixture f;
    struct parts parts;
    struct str groups = STR_INIT;
    (void)state;
    /* clang-format off */
    fixture_open(&f, "x = Placeholder() {dtype=float32, shape=[4]}" ON_TASK("a")
                     "large = Placeholder() {dtype=float32, shape=[1025]}" ON_TASK("a")
                     "unknown = Placeholder() {dtype=float32, shape=[?]}" ON_TASK("a")
                     "p = Placeholder() {dtype=bool, shape=[]}" ON_TASK("a")
                     "v = Variable() {dtype=float32, shape=[4]}" ON_TASK("a")
                     "s = Neg(x)" ON_TASK("a") "t = Abs(x)" ON_TASK("a")
                     "written = AssignAdd(v, x)" ON_TASK("a")
                     "after = Neg(x, ^written)" ON_TASK("a")
                     "either = Switch(x, p)" ON_TASK("a") "dead = Neg(either)" ON_TASK("a")
                     "s2 = Abs(s)" ON_TASK("b") "t2 = Abs(t)" ON_TASK("b")
                     "l2 = Abs(large)" ON_TASK("b") "k2 = Abs(unknown)" ON_TASK("b")
                     "a2 = Abs(after)" ON_TASK("b") "d2 = Abs(dead)" ON_TASK("b")
                     "s3 = Abs(s2)" ON_TASK("a") "t3 = Abs(t2)" ON_TASK("a")
                     "s4 = Add(s3, t3)" ON_TASK("b"), false);
    /* clang-format on */
    assert_int_equal(part_graph(f.graph, NULL, &parts, &f.err), 0);
    print_groups(&parts, &groups);
    assert_string_equal(str_text(&groups), "s t, s2 t2, s3 t3");
    str_release(&groups);
    parts_release(&parts);
    fixture_close(&f);
}

static void refuse(const char *text, const char *message)
{
    struct fixture f;
    struct parts parts;
    fixture_open(&f, text, false);
    unit_assert_error(part_graph(f.graph, NULL, &parts, &f.err), f.err, ERR_DATA, message);
    fixture_close(&f);
}

static void what_cannot_be_cut(void **state)
{
    (void)state;
    refuse("x = Const() {dtype=float32, value=3}\n",
           "node 'x': has no device; tf-place gives it one");
    refuse(VARIABLE "u = AssignAdd(v, one)" ON(1),
           "node 'u': must be on the device of 'v', /job:localhost/task:0/device:CPU:0");
    refuse("h = Stack() {elem_type=float32}" ON(0) "x = Const() {dtype=float32, value=3}" ON(
               1) "p = StackPush(h, x)" ON(1),
           "node 'p': must be on the device of 'h', /job:localhost/task:0/device:CPU:0");
}

static void a_part_does_not_run_alone(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f,
                 "r = Recv() {tensor_type=float32, tensor_name=\"s\", "
                 "send_device=\"/job:ps\", recv_device=\"/job:worker\"}\n",
                 false);
    struct tensor result;
    int code = fixture_run(&f, "r", NULL, NULL, &result);
    unit_assert_error(code, f.err, ERR_DATA,
                      "node 'r': Recv: nothing connects it to '/job:ps': all parts of a graph run "
                      "together");
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_crosses_once),
        cmocka_unit_test(a_constant_does_not_cross),
        cmocka_unit_test(axes_that_cross_change_no_bits),
        cmocka_unit_test(control_edges_cross_as_one),
        cmocka_unit_test(values_cross_in_16_bits),
        cmocka_unit_test(control_edges_order_effects),
        cmocka_unit_test(a_failure_ends_all_parts),
        cmocka_unit_test(a_value_is_received_as_late_as_its_link_allows),
        cmocka_unit_test(small_values_cross_together),
        cmocka_unit_test(what_cannot_be_cut),
        cmocka_unit_test(a_part_does_not_run_alone),
    };
    return cmocka_run_group_tests_name("part", tests, NULL, NULL);
}
