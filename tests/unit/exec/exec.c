/* SPDX-License-Identifier: Apache-2.0
 *
 * Execution: order of reads and writes, control flow, failures, overlapping steps.
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>

#include "lib/session.h"

static bool dynamic; /* whether the test at hand forces the dynamic executor */

static void fetches_what_is_fed_through_arithmetic(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f,
                 "x = Placeholder() {dtype=float32, shape=[]}\n"
                 "two = Const() {dtype=float32, value=2}\n"
                 "y = Mul(x, two)\n"
                 "z = Add(y, x)\n",
                 dynamic);
    assert_float_equal(fixture_get(&f, "z", 5), 15, 0);
    assert_float_equal(fixture_get(&f, "y", -1), -2, 0);
    assert_float_equal(fixture_get(&f, "x", 3), 3, 0);
    assert_float_equal(fixture_get(&f, "two", NAN), 2, 0);
    fixture_close(&f);
}

static const char counter[] = "v = Variable() {dtype=float32, shape=[]}\n"
                              "one = Const() {dtype=float32, value=1}\n"
                              "three = Const() {dtype=float32, value=3}\n"
                              "zero = Const() {dtype=float32, value=0}\n"
                              "init = Assign(v, zero)\n"
                              "read = Identity(v)\n"
                              "add = AssignAdd(v, one)\n"
                              "double = Mul(read, three)\n"
                              "late = Identity(read, ^add)\n"
                              "after = Identity(v, ^add)\n"
                              "again = Identity(read, ^add)\n"
                              "other = Mul(three, after)\n"
                              "late6 = Add(again, other)\n"
                              "through = Identity(add)\n"
                              "both = NoOp(^add, ^double)\n"
                              "itself = Assign(v, v)\n";

static void a_read_sees_the_state_before_the_writes_of_its_step(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f, counter, dynamic);
    fixture_do(&f, "^init");
    assert_float_equal(fixture_get(&f, "late6", NAN), 3, 0); /* a copy of a copy is a copy */
    fixture_do(&f, "^init");
    assert_float_equal(fixture_get(&f, "late", NAN), 0, 0);    /* read before, used after */
    assert_float_equal(fixture_get(&f, "after", NAN), 2, 0);   /* a control edge says otherwise */
    assert_float_equal(fixture_get(&f, "through", NAN), 3, 0); /* and so does a data edge */
    assert_float_equal(fixture_get(&f, "read", NAN), 3, 0);
    fixture_close(&f);
}

static void an_uninitialized_variable_is_named(void **state)
{
    struct fixture f;
    struct tensor result;
    (void)state;
    fixture_open(&f, counter, dynamic);
    assert_int_equal(fixture_run(&f, "double", NULL, NULL, &result), ERR_DATA);
    assert_non_null(strstr(f.err.text, "variable 'v' is not initialized"));
    assert_int_equal(fixture_run(&f, "^add", NULL, NULL, NULL), ERR_DATA);
    assert_int_equal(fixture_run(&f, "^itself", NULL, NULL, NULL), ERR_DATA);
    fixture_do(&f, "^init");
    assert_float_equal(fixture_get(&f, "double", NAN), 0, 0);
    fixture_close(&f);
}

static void a_source_that_is_not_fed_is_named(void **state)
{
    struct fixture f;
    struct tensor result;
    (void)state;
    fixture_open(&f, "x = Placeholder() {dtype=float32, shape=[]}\ny = Neg(x)\n", dynamic);
    assert_int_equal(fixture_run(&f, "y", NULL, NULL, &result), ERR_NOINPUT);
    assert_non_null(strstr(f.err.text, "node 'x'"));
    fixture_close(&f);
}

/* y = x if x > 0 else -x, with a side effect in the branch that is not taken. */
static const char absolute[] = "x = Placeholder() {dtype=float32, shape=[]}\n"
                               "zero = Const() {dtype=float32, value=0}\n"
                               "p = Greater(x, zero)\n"
                               "s = Switch(x, p)\n"
                               "neg = Neg(s)\n"
                               "pos = Identity(s:1)\n"
                               "y = Merge(neg, pos)\n"
                               "v = Variable() {dtype=float32, shape=[]}\n"
                               "init = Assign(v, zero)\n"
                               "write = Assign(v, neg)\n"
                               "read = Identity(v)\n"
                               "run = NoOp(^y)\n";

static void merge_takes_the_live_branch(void **state)
{
    struct fixture f;
    struct tensor result, value;
    float x = 1;
    (void)state;
    fixture_open(&f, absolute, dynamic);
    fixture_do(&f, "^init");
    assert_float_equal(fixture_get(&f, "y", -4), 4, 0);
    assert_float_equal(fixture_get(&f, "y", 3), 3, 0);
    value = tensor_borrow(FLOAT32, &SHAPE_SCALAR, &x);
    assert_int_equal(fixture_run(&f, "^write", "x", &value, NULL), 0);
    assert_float_equal(fixture_get(&f, "read", NAN), 0, 0); /* dead: nothing was written */
    x = -7;
    assert_int_equal(fixture_run(&f, "^write", "x", &value, NULL), 0);
    assert_float_equal(fixture_get(&f, "read", NAN), 7, 0);
    x = 7;
    assert_int_equal(fixture_run(&f, "neg", "x", &value, &result), ERR_DATA);
    assert_non_null(strstr(f.err.text, "dead"));
    fixture_close(&f);
}

/* while (i < n) { i += 1; a = 2 * a; } */
static const char loop[] =
    "x = Placeholder() {dtype=float32, shape=[]}\n"
    "zero = Const() {dtype=float32, value=0}\n"
    "start = Const() {dtype=float32, value=1}\n"
    "ei = Enter(zero) {frame_name=\"w\", is_constant=false, parallel_iterations=%d}\n"
    "ea = Enter(start) {frame_name=\"w\", is_constant=false, parallel_iterations=%d}\n"
    "en = Enter(x) {frame_name=\"w\", is_constant=true, parallel_iterations=%d}\n"
    "mi = Merge(ei, ni)\n"
    "ma = Merge(ea, na)\n"
    "less = Less(mi, en)\n"
    "cond = LoopCond(less)\n"
    "si = Switch(mi, cond)\n"
    "sa = Switch(ma, cond)\n"
    "bi = Identity(si:1)\n"
    "one = Const(^bi) {dtype=float32, value=1}\n"
    "two = Const(^bi) {dtype=float32, value=1.0001}\n"
    "ii = Add(bi, one)\n"
    "aa = Mul(sa:1, two)\n"
    "ni = NextIteration(ii)\n"
    "na = NextIteration(aa)\n"
    "xi = Exit(si)\n"
    "xa = Exit(sa)\n"
    "y = Add(xi, zero)\n";

static void loops_run_any_number_of_times(void **state)
{
    (void)state;
    for (int parallel = 1; parallel <= 10; parallel += 9) {
        struct fixture f;
        char text[4096];
        snprintf(text, sizeof text, loop, parallel, parallel, parallel);
        fixture_open(&f, text, dynamic);
        assert_float_equal(fixture_get(&f, "y", 0), 0, 0);
        assert_float_equal(fixture_get(&f, "xa", 0), 1, 0);
        assert_float_equal(fixture_get(&f, "xa", 1), 1.0001f, 0);
        assert_float_equal(fixture_get(&f, "y", 17), 17, 0);
        const float n = fixture_iterations(100000);
        assert_float_equal(fixture_get(&f, "y", n), n, 0);
        fixture_close(&f);
    }
}

static void a_loop_on_a_branch_that_is_not_taken_ends(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f,
                 "x = Placeholder() {dtype=float32, shape=[]}\n"
                 "zero = Const() {dtype=float32, value=0}\n"
                 "p = Greater(x, zero)\n"
                 "s = Switch(x, p)\n"
                 "e = Enter(s:1) {frame_name=\"w\", is_constant=false}\n"
                 "m = Merge(e, n)\n"
                 "one = Const(^m) {dtype=float32, value=1}\n"
                 "c = Greater(m, one)\n"
                 "l = LoopCond(c)\n"
                 "b = Switch(m, l)\n"
                 "body = Identity(b:1)\n"
                 "step = Const(^body) {dtype=float32, value=1}\n"
                 "d = Sub(body, step)\n"
                 "n = NextIteration(d)\n"
                 "out = Exit(b)\n"
                 "y = Merge(out, s)\n",
                 dynamic);
    assert_float_equal(fixture_get(&f, "y", -5), -5, 0);
    assert_float_equal(fixture_get(&f, "y", 5.5), 0.5, 0);
    fixture_close(&f);
}

static void a_value_inside_a_loop_cannot_be_fetched(void **state)
{
    struct fixture f;
    struct tensor result, value;
    float x = 1;
    char text[4096];
    (void)state;
    snprintf(text, sizeof text, loop, 1, 1, 1);
    fixture_open(&f, text, dynamic);
    value = tensor_borrow(FLOAT32, &SHAPE_SCALAR, &x);
    assert_int_equal(fixture_run(&f, "ii", "x", &value, &result), ERR_DATA);
    assert_non_null(strstr(f.err.text, "inside the loop 'w'"));
    fixture_close(&f);
}

static void any_number_of_shapes_is_served(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f,
                 "x = Placeholder() {dtype=float32, shape=[?]}\n"
                 "two = Const() {dtype=float32, value=2}\n"
                 "y = Mul(x, two)\n"
                 "axis = Const() {dtype=int32, value=[0]}\n"
                 "sum = Sum(y, axis) {keep_dims=false}\n",
                 dynamic);
    for (int round = 0; round < 3; round++) {
        for (int n = 1; n <= 40; n++) { /* more shapes than the session keeps plans for */
            float elements[40];
            struct shape shape = shape_vector(n);
            struct tensor result, x = tensor_borrow(FLOAT32, &shape, elements);
            for (int i = 0; i < n; i++)
                elements[i] = (float)(i + round);
            assert_int_equal(fixture_run(&f, "sum", "x", &x, &result), 0);
            assert_float_equal(tensor_get_float64(&result, 0), n * (n - 1) + 2 * n * round, 0);
            tensor_release(&result);
        }
    }
    float element = 0;
    struct tensor result, scalar = tensor_borrow(FLOAT32, &SHAPE_SCALAR, &element);
    assert_int_equal(fixture_run(&f, "sum", "x", &scalar, &result), ERR_DATA);
    assert_non_null(strstr(f.err.text, "node 'x'"));
    fixture_close(&f);
}

static void *add_many(void *argument)
{
    struct fixture *shared = argument, own = *shared;
    for (int i = 0; i < 200; i++)
        if (fixture_run(&own, "^both", NULL, NULL, NULL))
            return "failed";
    return NULL;
}

static void overlapping_steps_sum_exactly(void **state)
{
    struct fixture f;
    pthread_t threads[32];
    (void)state;
    fixture_open(&f, counter, dynamic);
    fixture_do(&f, "^init");
    for (int i = 0; i < 32; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, &f), 0);
    for (int i = 0; i < 32; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_float_equal(fixture_get(&f, "read", NAN), 32 * 200, 0);
    fixture_close(&f);
}

static void a_chain_of_ten_thousand_runs(void **state)
{
    struct fixture f;
    struct str text = STR_INIT;
    (void)state;
    str_append(&text, "x = Placeholder() {dtype=float32, shape=[]}\nn0 = Neg(x)\n");
    for (int i = 1; i < 10000; i++)
        str_printf(&text, "n%d = Neg(n%d)\n", i, i - 1);
    fixture_open(&f, str_text(&text), dynamic);
    assert_float_equal(fixture_get(&f, "n9999", 3), 3, 0);
    assert_float_equal(fixture_get(&f, "n9998", 3), -3, 0);
    fixture_close(&f);
    str_release(&text);
}

static int use_dynamic(void **state)
{
    (void)state;
    dynamic = true;
    return 0;
}

#define BOTH_EXECUTORS                                                                             \
    cmocka_unit_test(fetches_what_is_fed_through_arithmetic),                                      \
        cmocka_unit_test(a_read_sees_the_state_before_the_writes_of_its_step),                     \
        cmocka_unit_test(an_uninitialized_variable_is_named),                                      \
        cmocka_unit_test(a_source_that_is_not_fed_is_named),                                       \
        cmocka_unit_test(merge_takes_the_live_branch),                                             \
        cmocka_unit_test(loops_run_any_number_of_times),                                           \
        cmocka_unit_test(a_loop_on_a_branch_that_is_not_taken_ends),                               \
        cmocka_unit_test(a_value_inside_a_loop_cannot_be_fetched),                                 \
        cmocka_unit_test(any_number_of_shapes_is_served),                                          \
        cmocka_unit_test(overlapping_steps_sum_exactly),                                           \
        cmocka_unit_test(a_chain_of_ten_thousand_runs)

int main(void)
{
    const struct CMUnitTest automatic[] = {BOTH_EXECUTORS};
    const struct CMUnitTest forced[] = {BOTH_EXECUTORS};
    int failed = cmocka_run_group_tests_name("static where possible", automatic, NULL, NULL);
    return failed + cmocka_run_group_tests_name("dynamic", forced, use_dynamic, NULL);
}
