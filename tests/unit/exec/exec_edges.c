/* SPDX-License-Identifier: Apache-2.0
 *
 * Execution at its edges: long, wide, endless and failing steps, and many at once.
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/session.h"

/* Sanitizers are slow. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MANY 100000
#else
#define MANY 1000000
#endif

/* A loop from 0 to x by 1, whose second variable is doubled and never used; "%s" is more nodes. */
static const char counting[] = "x = Placeholder() {dtype=float32, shape=[]}\n"
                               "zero = Const() {dtype=float32, value=0}\n"
                               "ei = Enter(zero) {frame_name=\"w\", is_constant=false}\n"
                               "ea = Enter(zero) {frame_name=\"w\", is_constant=false}\n"
                               "en = Enter(x) {frame_name=\"w\", is_constant=true}\n"
                               "mi = Merge(ei, ni)\n"
                               "ma = Merge(ea, na)\n"
                               "less = Less(mi, en)\n"
                               "cond = LoopCond(less)\n"
                               "si = Switch(mi, cond)\n"
                               "sa = Switch(ma, cond)\n"
                               "bi = Identity(si:1)\n"
                               "one = Const(^bi) {dtype=float32, value=1}\n"
                               "ii = Add(bi, one)\n"
                               "checked = CheckNumerics(sa:1) {message=\"in the loop\"}\n"
                               "scaled = Div(one, checked)\n"
                               "ni = NextIteration(ii)\n"
                               "na = NextIteration(scaled)\n"
                               "xi = Exit(si)\n"
                               "xa = Exit(sa)\n"
                               "both = Add(xi, xa)\n"
                               "outside = Neg(x)\n";

static void a_long_loop_takes_little_memory(void **state)
{
    struct fixture f;
    struct rusage before, after;
    (void)state;
    const float n = fixture_iterations(MANY);
    fixture_open(&f, counting, false);
    assert_float_equal(fixture_get(&f, "xi", 1000), 1000, 0);
    getrusage(RUSAGE_SELF, &before);
    assert_float_equal(fixture_get(&f, "xi", n), n, 0);
    getrusage(RUSAGE_SELF, &after);
    assert_true(after.ru_maxrss - before.ru_maxrss < 16 << 10); /* KB */
    fixture_close(&f);
}

static void an_error_in_a_loop_names_the_node(void **state)
{
    struct fixture f;
    struct tensor result, value;
    float x = 10;
    (void)state;
    fixture_open(&f, counting, false); /* 1 / 0 in the first iteration */
    value = tensor_borrow(FLOAT32, &SHAPE_SCALAR, &x);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(fixture_run(&f, "both", "x", &value, &result), ERR_DATA);
        assert_non_null(strstr(f.err.text, "node 'checked'"));
        assert_null(result.data);
    }
    assert_float_equal(fixture_get(&f, "outside", 3), -3, 0);
    fixture_close(&f);
}

struct endless {
    struct fixture *fixture;
    struct step step;
    int code;
};

static void *run_endless(void *argument)
{
    struct endless *e = argument;
    struct edge fetch, feed;
    struct tensor result, value;
    float x = INFINITY;
    value = tensor_borrow(FLOAT32, &SHAPE_SCALAR, &x);
    if (graph_parse_edge(e->fixture->graph, "xi", &fetch, &e->fixture->err) ||
        graph_parse_edge(e->fixture->graph, "x", &feed, &e->fixture->err))
        return NULL;
    struct plan_request call = {
        .feeds = &feed, .feed_values = &value, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1};
    e->code = session_run(e->fixture->session, &call, &e->step, &result, &e->fixture->err);
    return NULL;
}

static void an_endless_loop_is_cancelled(void **state)
{
    struct fixture f;
    pthread_t thread;
    (void)state;
    fixture_open(&f, counting, false);
    struct endless e = {.fixture = &f, .step = {.number = 1}};
    assert_int_equal(pthread_create(&thread, NULL, run_endless, &e), 0);
    usleep(50000);
    atomic_store(&e.step.cancelled, true);
    pthread_join(thread, NULL);
    assert_int_equal(e.code, ERR_CANCELLED);
    fixture_close(&f);
}

/* One node, n nodes, one node: the sum of n negations. */
static void wide(int n, bool dynamic)
{
    struct fixture f;
    struct str text = STR_INIT;
    str_append(&text, "x = Placeholder() {dtype=float32, shape=[]}\n");
    for (int i = 0; i < n; i++)
        str_printf(&text, "n%d = Neg(x)\n", i);
    str_append(&text, "sum = AddN(");
    for (int i = 0; i < n; i++)
        str_printf(&text, "%sn%d", i ? ", " : "", i);
    str_append(&text, ")\nafter = Identity(x");
    for (int i = 0; i < n; i++)
        str_printf(&text, ", ^n%d", i);
    str_append(&text, ")\n");
    fixture_open(&f, str_text(&text), dynamic);
    for (int i = 0; i < 3; i++) {
        assert_float_equal(fixture_get(&f, "sum", 2), -2 * n, 0);
        assert_float_equal(fixture_get(&f, "after", 2), 2, 0);
    }
    fixture_close(&f);
    str_release(&text);
}

static void wide_graphs_run(void **state)
{
    (void)state;
    wide(1000, false);
    wide(1000, true);
    wide(MANY / 100, false);
    wide(MANY / 100, true);
}

/* Nodes in a chain of control edges, and a value at its end. */
static void a_chain_of_nothing(void **state)
{
    struct fixture f;
    struct str text = STR_INIT;
    (void)state;
    str_append(&text, "x = Placeholder() {dtype=float32, shape=[]}\nn0 = NoOp()\n");
    for (int i = 1; i < MANY; i++)
        str_printf(&text, "n%d = NoOp(^n%d)\n", i, i - 1);
    str_printf(&text, "y = Neg(x, ^n%d)\n", MANY - 1);
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        fixture_open(&f, str_text(&text), dynamic);
        assert_float_equal(fixture_get(&f, "y", 2), -2, 0);
        assert_float_equal(fixture_get(&f, "y", 3), -3, 0);
        fixture_close(&f);
    }
    str_release(&text);
}

static void a_merge_with_two_live_inputs_runs_once(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f,
                 "x = Placeholder() {dtype=float32, shape=[]}\n"
                 "a = Identity(x)\n"
                 "b = Identity(x, ^a)\n"
                 "m = Merge(a, b)\n"
                 "v = Variable() {dtype=float32, shape=[]}\n"
                 "zero = Const() {dtype=float32, value=0}\n"
                 "init = Assign(v, zero)\n"
                 "add = AssignAdd(v, m)\n"
                 "read = Identity(add)\n",
                 false);
    fixture_do(&f, "^init");
    for (int i = 1; i <= 100; i++)
        assert_float_equal(fixture_get(&f, "read", 2), 2 * i, 0);
    fixture_close(&f);
}

/* Entries that read four variables and then add to them, in different orders, each read still
 * needed when the writes begin; with a Merge the plan is dynamic. */
static void add_entry(struct str *text, int entry)
{
    bool backwards = entry & 1, dynamic = entry & 2;
    const char *last = "one";
    char name[32] = "";
    for (int k = 0; k < 4; k++)
        str_printf(text, "r%d_%d = Identity(v%d%s)\n", entry, k, backwards ? 3 - k : k,
                   dynamic && !k ? ", ^m" : "");
    for (int k = 0; k < 4; k++) {
        int v = entry & 4 ? k : 3 - k;
        str_printf(text, "u%d_%d = Mul(r%d_%d, zero%s)\n", entry, k, entry, k, name);
        str_printf(text, "d%d_%d = Add(u%d_%d, %s)\n", entry, k, entry, k, last);
        str_printf(text, "w%d_%d = AssignAdd(v%d, d%d_%d)\n", entry, k, v, entry, k);
        snprintf(name, sizeof name, ", ^w%d_%d", entry, k);
    }
    str_printf(text, "e%d = NoOp(^w%d_0, ^w%d_1, ^w%d_2, ^w%d_3%s)\n", entry, entry, entry, entry,
               entry, dynamic ? ", ^m" : "");
}

#define N_ENTRIES 24
#define N_THREADS 8
#define N_STEPS (MANY / 5000)

static void *run_entries(void *argument)
{
    struct fixture *shared = argument, own = *shared;
    char target[16];
    for (int i = 0; i < N_STEPS; i++) {
        snprintf(target, sizeof target, "^e%d", (i * 5 + i / 7) % N_ENTRIES);
        if (fixture_run(&own, target, NULL, NULL, NULL)) {
            print_message("%s: %s\n", target, own.err.text);
            return "failed";
        }
    }
    return NULL;
}

static void add_variables(struct str *text)
{
    str_append(text, "zero = Const() {dtype=float32, value=0}\n"
                     "one = Const() {dtype=float32, value=1}\n"
                     "p = Greater(one, zero)\ns = Switch(one, p)\nm = Merge(s, s:1)\n");
    for (int v = 0; v < 4; v++)
        str_printf(text,
                   "v%d = Variable() {dtype=float32, shape=[]}\ni%d = Assign(v%d, zero)\n"
                   "read%d = Identity(v%d)\n",
                   v, v, v, v, v);
    str_append(text, "init = NoOp(^i0, ^i1, ^i2, ^i3)\n");
}

/* The cache holds fewer plans than there are entries, so plans are evicted and remade. */
static void steps_in_any_order_do_not_wait_in_a_circle(void **state)
{
    struct fixture f;
    struct str text = STR_INIT;
    pthread_t threads[N_THREADS];
    char fetch[16];
    (void)state;
    add_variables(&text);
    for (int e = 0; e < N_ENTRIES; e++)
        add_entry(&text, e);
    fixture_open(&f, str_text(&text), false);
    fixture_do(&f, "^init");
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_entries, &f), 0);
    for (int i = 0; i < N_THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    for (int v = 0; v < 4; v++) {
        snprintf(fetch, sizeof fetch, "read%d", v);
        assert_float_equal(fixture_get(&f, fetch, NAN), N_THREADS * N_STEPS, 0);
    }
    fixture_close(&f);
    str_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_loop_takes_little_memory),
        cmocka_unit_test(an_error_in_a_loop_names_the_node),
        cmocka_unit_test(an_endless_loop_is_cancelled),
        cmocka_unit_test(wide_graphs_run),
        cmocka_unit_test(a_chain_of_nothing),
        cmocka_unit_test(a_merge_with_two_live_inputs_runs_once),
        cmocka_unit_test(steps_in_any_order_do_not_wait_in_a_circle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
