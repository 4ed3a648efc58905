/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of reads and writes of variables within a step: cases that once failed.
 */
#include "lib/session.h"

#include "lib/order_call.h"

#define V(name) name " = Variable() {dtype=float64, shape=[]}\n"
#define X "x = Placeholder() {dtype=float64, shape=[]}\n"
#define INIT(name, value)                                                                          \
    "k" name " = Const() {dtype=float64, value=" value "}\ninit" name " = Assign(" name ", k" name \
    ")\n"

enum how { STATIC, DYNAMIC, PARTS, N_HOW };

struct small {
    struct graph *whole, *graph;
    struct cut_graph cut;
    bool is_cut;
    struct session *session;
    struct error err;
};

/* p0 is false. */
static const struct model truths = {.predicates = {false, true}};

static void small_open(struct small *s, const char *text, enum how how)
{
    *s = (struct small){.err = ERROR_INIT};
    if (graph_parse_text(text, strlen(text), "test", ops_registry(), &s->whole, &s->err))
        fail_msg("%s", s->err.text);
    s->graph = s->whole;
    s->is_cut = how == PARTS;
    if (s->is_cut) {
        order_place(s->whole, 3);
        cut_open(&s->cut, s->whole);
        s->graph = s->cut.joined;
    }
    struct session_options options = {.plan = {.kernels = ops_kernels(),
                                               .device = fixture_device(),
                                               .threads = 1,
                                               .cut = how == DYNAMIC ? CUT_REGIONS : CUT_WHOLE},
                                      .devices = s->is_cut ? cut_devices() : NULL,
                                      .n_devices = s->is_cut ? CUT_DEVICES : 0};
    s->session = session_new(s->graph, &options);
}

static void small_close(struct small *s)
{
    session_free(s->session);
    if (s->is_cut)
        cut_close(&s->cut);
    graph_free(s->whole);
}

/* Fetches up to three tensors, and runs up to three nodes, by names that blanks separate. */
static int small_run(struct small *s, const char *fetches, const char *targets, double *values)
{
    char names[2][100], *rest;
    struct order_wanted wanted = {.n_fetches = 0};
    snprintf(names[0], sizeof names[0], "%s", fetches);
    snprintf(names[1], sizeof names[1], "%s", targets);
    for (int i = 0; i < 2; i++)
        for (char *name = strtok_r(names[i], " ", &rest); name; name = strtok_r(NULL, " ", &rest))
            if (graph_parse_edge(s->graph, name,
                                 i ? &wanted.targets[wanted.n_targets++]
                                   : &wanted.fetches[wanted.n_fetches++],
                                 &s->err))
                fail_msg("%s", s->err.text);
    error_clear(&s->err);
    return order_call(s->session, s->graph, &truths, &wanted, values, &s->err);
}

static void small_init(struct small *s)
{
    double none[CALLS_MAX];
    for (size_t i = 0; i < s->graph->nodes.n; i++) {
        const char *name = graph_node(s->graph, (int)i)->name;
        if (!strncmp(name, "init", 4) && small_run(s, "", name, none))
            fail_msg("%s", s->err.text);
    }
}

static void check_values(const char *text, const char *fetches, const char *targets,
                         const double *expected)
{
    for (int how = 0; how < (strstr(text, "Stack(") ? PARTS : N_HOW); how++) {
        struct small s;
        double values[CALLS_MAX];
        small_open(&s, text, (enum how)how);
        small_init(&s);
        if (small_run(&s, fetches, targets, values))
            fail_msg("%s", s.err.text);
        for (int i = 0; i < 3 && expected[i] >= 0; i++)
            if (fabs(values[i] - expected[i]) > 1e-12)
                fail_msg("%d of %s is %g, not %g", i, fetches, values[i], expected[i]);
        small_close(&s);
    }
}

#define CROSSED                                                                                    \
    X "n1 = Identity(v2)\nn6 = Assign(v0, n1)\nn2 = Assign(v2, x)\nn10 = Identity(v0, ^n2)\n"

/* An order chosen between one variable's read and another's write is no path. Variables are created
 * in the order in which they are initialized. */
static void an_order_that_was_chosen_is_no_path(void **state)
{
    static const double expected[] = {3, -1};
    (void)state;
    check_values(V("v0") V("v2") CROSSED INIT("v0", "3") INIT("v2", "13"), "n10", "n6 n2",
                 expected);
    check_values(V("v2") V("v0") CROSSED INIT("v0", "3") INIT("v2", "13"), "n10", "n6 n2",
                 expected);
    check_values(V("v0") V("v2") CROSSED INIT("v2", "13") INIT("v0", "3"), "n10", "n6 n2",
                 expected);
    check_values(V("v2") V("v0") CROSSED INIT("v2", "13") INIT("v0", "3"), "n10", "n6 n2",
                 expected);
}

static void a_copy_is_made_where_a_user_comes_later(void **state)
{
    static const double first[] = {11 - 11, 11, -1}, second[] = {5 + 10, 5 + 2, -1};
    (void)state;
    check_values(V("v0") X "n0 = AssignAdd(v0, x)\nn1 = Identity(v0, ^n0)\nn3 = Assign(v0, n1)\n"
                           "n5 = Identity(v0, ^n3)\nn6 = Identity(n1, ^n5)\nn7 = Sub(v0, n1)\n"
                           "n8 = Identity(n6)\n" INIT("v0", "1"),
                 "n7 n8", "", first);
    for (int swapped = 0; swapped < 2; swapped++) {
        struct str text = STR_INIT;
        str_append(&text, swapped ? V("v1") V("v2") : V("v2") V("v1"));
        str_append(&text,
                   X "w2 = Assign(v2, x)\na = Identity(v1, ^w2)\nw1 = Assign(v1, x)\n"
                     "r2 = Identity(v2)\nc = Add(a, x, ^w1)\nd = Add(a, r2)\n" INIT("v1", "5")
                         INIT("v2", "2"));
        check_values(str_text(&text), "c d", "", second);
        str_release(&text);
    }
}

/* Readers of a write's reference, some on other devices, run after the next write. */
static void a_reference_is_read_after_the_writes_behind_it(void **state)
{
    static const double expected[] = {31, 31, 31};
    (void)state;
    check_values(V("v") X "w = AssignAdd(v, x)\nu = AssignAdd(v, x, ^w)\n"
                          "far = Add(w, x, ^u)\nnear = Add(w, x, ^u)\n"
                          "away = Add(w, x, ^u)\n" INIT("v", "1"),
                 "far near away", "", expected);
}

static void a_step_that_contradicts_itself_is_refused(void **state)
{
    (void)state;
    for (int how = 0; how < PARTS; how++) {
        struct small s;
        double values[CALLS_MAX];
        small_open(&s,
                   V("v") X "a = AssignAdd(v, x)\nb = AssignAdd(v, x)\nra = Identity(v, ^a)\n"
                            "rb = Identity(v, ^b)\n",
                   (enum how)how);
        unit_assert_error(small_run(&s, "ra rb", "", values), s.err, ERR_DATA,
                          "reads and writes of variables contradict each other: 'a' before 'ra' "
                          "reads before 'b' before 'rb' reads before 'a'");
        small_close(&s);
    }
}

/* A push keeps the variable's value. */
static void what_is_kept_is_not_the_variables_memory(void **state)
{
    static const double expected[] = {7, -1};
    (void)state;
    check_values(
        V("v") X
        "h = Stack() {elem_type=float64}\np = StackPush(h, v)\n"
        "a = Assign(v, x, ^p)\nq = StackPop(h, ^a) {elem_type=float64, shape=[]}\n" INIT("v", "7"),
        "q", "a", expected);
}

static void a_feed_satisfies_control_edges(void **state)
{
    static const double expected[] = {3, 4, -1};
    (void)state;
    check_values(V("v") X
                 "k = Const() {dtype=float64, value=3}\ny = Identity(k, ^x)\n"
                 "one = Const() {dtype=float64, value=1}\nz = Add(y, one, ^x)\n" INIT("v", "7"),
                 "y z", "", expected);
}

/* ---- paths and waits differ ---- */

#define B(name) name " = Placeholder() {dtype=bool, shape=[]}\n"

/* With p0 false, the path from w1 ends in a branch that is not taken; Merge does not wait for it.
 */
static void a_branch_that_is_not_taken_orders(void **state)
{
    static const double expected[] = {3, 5, -1};
    (void)state;
    check_values(V("v") X B("p0") "k = Const() {dtype=float64, value=3}\n"
                                  "five = Const() {dtype=float64, value=5}\nw1 = AssignAdd(v, k)\n"
                                  "f = Switch(x, p0)\nt = Identity(f:1, ^w1)\nn = Neg(f:0)\n"
                                  "r = Merge(n, t)\nw2 = Assign(v, five, ^r)\n"
                                  "y = Identity(v, ^r)\nlast = Identity(v, ^w2)\n" INIT("v", "0"),
                 "y last", "", expected);
}

/* Other devices hear that a write in a branch that is not taken did not run. */
static void a_write_that_does_not_run_brings_nothing(void **state)
{
    (void)state;
    for (int how = 0; how < N_HOW; how++) {
        struct small s;
        double values[CALLS_MAX];
        small_open(&s,
                   V("v") V("a") X B("p1") "f = Switch(x, p1)\nw = AssignAdd(v, f)\n"
                                           "far = Neg(w)\nnear = Neg(w)\naway = Neg(w)\n"
                                           "u = AssignAdd(a, far)\nu2 = AssignAdd(a, near)\n"
                                           "u3 = AssignAdd(a, away)\n" INIT("v", "7")
                                               INIT("a", "5"),
                   (enum how)how);
        small_init(&s);
        if (small_run(&s, "", "u u2 u3", values) || small_run(&s, "a v", "", values))
            fail_msg("%s", s.err.text);
        assert_true(values[0] == 5 && values[1] == 7);
        small_close(&s);
    }
}

/* The writes before the loop's other inputs do not matter to this one. */
static void what_enters_a_loop_is_read_before(void **state)
{
    static const double expected[] = {7, 17, -1};
    (void)state;
    check_values(V("v") X "w = AssignAdd(v, x)\nzero = Const() {dtype=float64, value=0}\n"
                          "e = Enter(v) {frame_name=\"l\"}\n"
                          "f = Enter(w) {frame_name=\"l\", is_constant=true}\n"
                          "z = Enter(zero) {frame_name=\"l\"}\n"
                          "m = Merge(e, n)\nc = Merge(z, d)\n"
                          "k = Less(c, f)\nq = LoopCond(k)\n"
                          "s = Switch(m, q)\nt = Switch(c, q)\n"
                          "a = Add(t:1, f)\nd = NextIteration(a)\nn = NextIteration(s:1)\n"
                          "y = Exit(s)\nu = Exit(t)\n" INIT("v", "7"),
                 "y u", "", expected);
}

/* One branch writes and reads, the other has a loop that reads and writes the same variables.
 * Exclusive branches close no cycle, whichever comes first and whichever device sees a part of
 * them. */
static void branches_that_exclude_each_other_do_not_wait(void **state)
{
    static const double expected[][3] = {{10 + 7, 7, -1}, {5, 5, -1}};
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct str text = STR_INIT;
        int taken = i % 2;
        char write = i < 2 ? 'a' : 'z'; /* the loop's write; the branch's is w */
        str_printf(&text,
                   V("u") V("v") X B("p%d") "t = Switch(x, p%d)\nw = Assign(u, t:1)\n"
                                            "r = Identity(v, ^w)\n"
                                            "o = Enter(t) {frame_name=\"l\"}\nc = Merge(o, n)\n"
                                            "h = Const(^c) {dtype=float64, value=15}\n"
                                            "k = Less(c, h)\nq = LoopCond(k)\n"
                                            "s = Switch(c, q)\ni = Identity(s:1)\n"
                                            "g = Identity(u, ^i)\n%c = Assign(v, g)\n"
                                            "d = Add(i, %c)\nn = NextIteration(d)\n"
                                            "e = Exit(s)\nm = Merge(e, r)\n"
                                            "y = Identity(v, ^m)\n" INIT("u", "7") INIT("v", "5"),
                   taken, taken, write, write);
        check_values(str_text(&text), "m y", "", expected[taken]);
        str_release(&text);
    }
}

static void writes_follow_each_other_by_name(void **state)
{
    static const double alone[] = {15, -1};
    static const double expected[] = {10 + 3, -1};
    (void)state;
    check_values(V("v") X "a = Assign(v, x)\nb = AssignAdd(v, v)\ng = NoOp(^a, ^b)\n"
                          "y = Identity(v, ^g)\n" INIT("v", "3"),
                 "y", "", expected);
    /* also if the variable of one of them has no other use */
    check_values(V("v") V("z") X "five = Const() {dtype=float64, value=5}\nm = Assign(v, five)\n"
                                 "n = Assign(z, five)\na = AssignAdd(v, x, ^n)\n"
                                 "y = Identity(v, ^a, ^m)\n" INIT("v", "1") INIT("z", "1"),
                 "y", "", alone);
}

/* An op that reads an input again after it has changed the variable gets a copy. */
static void an_update_by_its_own_slot(void **state)
{
    static const double expected[] = {1 - 0.5 * 4 / 4.472135954999579, 20, -1};
    (void)state;
    for (int read = 0; read < 2; read++) {
        struct str text = STR_INIT;
        str_printf(&text,
                   V("w") V("a") "lr = Const() {dtype=float64, value=0.5}\n"
                                 "%sg = ApplyAdagrad(w, a, lr, %s)\n"
                                 "y = Identity(w, ^g)\nz = Identity(a, ^g)\n" INIT("w", "1")
                                     INIT("a", "4"),
                   read ? "r = Identity(a)\n" : "", read ? "r" : "a");
        check_values(str_text(&text), "y z", "", expected);
        str_release(&text);
    }
}

/* A device whose only work in the step is a feed. */
static void a_feed_of_an_idle_device(void **state)
{
    static const double expected[] = {7, -1};
    (void)state;
    check_values(V("v") X B("p0") B("p1") "y = Identity(v)\n" INIT("v", "7"), "y", "", expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_order_that_was_chosen_is_no_path),
        cmocka_unit_test(a_copy_is_made_where_a_user_comes_later),
        cmocka_unit_test(a_reference_is_read_after_the_writes_behind_it),
        cmocka_unit_test(a_step_that_contradicts_itself_is_refused),
        cmocka_unit_test(what_is_kept_is_not_the_variables_memory),
        cmocka_unit_test(a_feed_satisfies_control_edges),
        cmocka_unit_test(a_branch_that_is_not_taken_orders),
        cmocka_unit_test(a_write_that_does_not_run_brings_nothing),
        cmocka_unit_test(what_enters_a_loop_is_read_before),
        cmocka_unit_test(branches_that_exclude_each_other_do_not_wait),
        cmocka_unit_test(writes_follow_each_other_by_name),
        cmocka_unit_test(an_update_by_its_own_slot),
        cmocka_unit_test(a_feed_of_an_idle_device),
    };
    return cmocka_run_group_tests_name("order_cases", tests, NULL, NULL);
}
