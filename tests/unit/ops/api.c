/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions behind the public library: results, errors and their messages, and steps of several
 * threads.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "lib/api_lab.h"

static void test_steps(void **state)
{
    struct lab lab = lab_open(LINE);
    tf_call *call = prepare(&lab, "x", "x", "train");
    struct tf_tensor x = points(3);
    (void)state;
    assert_int_equal(tf_core.call_fetches(call), 2);
    assert_string_equal(tf_core.call_fetch_name(call, 1), "sum");
    assert_null(tf_core.call_fetch_name(call, 2));
    ok(tf_core.call_feed(call, 0, &x, &error));
    ok(tf_core.call_run(call, &error));
    ok(tf_core.call_run(call, &error)); /* it is still fed */
    assert_true(number(call, 1) == 6);
    x = points(2); /* has another shape */
    ok(tf_core.call_feed(call, 0, &x, &error));
    ok(tf_core.call_run(call, &error));
    assert_true(number(call, 1) == 3);
    ok(tf_core.call_fetch(call, 0, &x, &error));
    assert_int_equal(x.shape.dims[0], 2);
    assert_int_equal(tf_core.session_step(lab.session), 3);
    assert_true(value_of(&lab) == 15);
    tf_core.call_free(call);
    lab_close(&lab);
}

static void test_strings(void **state)
{
    static const char *const texts[] = {"one", "tw\0"};
    static const size_t lengths[] = {3, 3};
    struct lab lab = lab_open("s = Placeholder() {dtype=string, shape=[?]}\nt = Identity(s)\n");
    tf_call *call = prepare(&lab, "s", "t", NULL);
    struct tf_shape two = {1, {2}};
    struct tf_tensor value;
    size_t n;
    (void)state;
    ok(tf_core.call_feed_strings(call, 0, &two, texts, lengths, &error));
    ok(tf_core.call_run(call, &error));
    assert_memory_equal(tf_core.call_fetch_string(call, 0, 1, &n), "tw", 3);
    assert_int_equal(n, 3);
    assert_null(tf_core.call_fetch_string(call, 0, 2, &n));
    ok(tf_core.call_fetch(call, 0, &value, &error));
    assert_int_equal(value.type, TF_STRING);
    assert_null(value.data);
    value = (struct tf_tensor){TF_STRING, two, texts, sizeof texts};
    failed(tf_core.call_feed(call, 0, &value, &error), TF_USAGE,
           "graph: feed 's': strings are fed by tf_call_feed_strings");
    tf_core.call_free(call);
    lab_close(&lab);
}

static void keep_line(const char *line, void *context)
{
    snprintf(context, 100, "%s", line);
}

static void test_what_ops_print(void **state)
{
    char line[100] = "";
    struct lab lab = lab_open("x = Const() {dtype=float32, value=2.5}\n"
                              "p = Print(x, x) {message=\"x is \"}\n");
    tf_call *call = prepare(&lab, NULL, "p", NULL);
    (void)state;
    tf_core.on_print(keep_line, line);
    ok(tf_core.call_run(call, &error));
    tf_core.on_print(NULL, NULL);
    ok(tf_core.call_run(call, &error));
    assert_non_null(strstr(line, "x is "));
    assert_non_null(strstr(line, "2.5"));
    tf_core.call_free(call);
    lab_close(&lab);
}

static void refuse(struct lab *lab, const char *const names[3], int code, const char *line)
{
    error.code = 0;
    assert_null(tf_core.call_prepare(lab->session, names[0], names[1], names[2], &error));
    failed(error.code, code, line);
}

static void test_calls_that_cannot_be(void **state)
{
    struct lab lab = lab_open(LINE);
    (void)state;
    refuse(&lab, (const char *[]){"y", "sum", NULL}, TF_DATA, "graph: there is no node 'y'");
    refuse(&lab, (const char *[]){"x", "smm", NULL}, TF_DATA,
           "graph: there is no node 'smm' (did you mean 'sum'?)");
    refuse(&lab, (const char *[]){"x", NULL, "trian"}, TF_DATA,
           "graph: there is no entry or node 'trian'; the entries are init, train");
    refuse(&lab, (const char *[]){"^x", "sum", NULL}, TF_DATA, "graph: feed '^x': not a tensor");
    refuse(&lab, (const char *[]){"x,x", "sum", NULL}, TF_USAGE, "graph: 'x' is fed twice");
    refuse(&lab, (const char *[]){"x", NULL, NULL}, TF_USAGE, "graph: nothing to fetch or to run");
    refuse(&lab, (const char *[]){NULL, "w", "train"}, TF_NOINPUT,
           "graph: not among what is fed: x float32[?]");
    assert_null(tf_core.call_prepare(NULL, NULL, NULL, NULL, &error));
    failed(error.code, TF_USAGE, "there is no session");
    assert_null(tf_core.call_prepare(NULL, NULL, NULL, NULL, NULL));
    lab_close(&lab);
}

static void test_feeds_that_do_not_fit(void **state)
{
    struct lab lab = lab_open(LINE);
    tf_call *call = prepare(&lab, "x", NULL, "train");
    struct tf_tensor x = points(3);
    (void)state;
    failed(tf_core.call_run(call, &error), TF_NOINPUT, "graph: node 'x': not fed");
    failed(tf_core.call_feed(call, 1, &x, &error), TF_USAGE,
           "graph: there is no feed 1: there are 1");
    x.type = TF_INT32;
    failed(tf_core.call_feed(call, 0, &x, &error), TF_DATA,
           "graph: feed 'x': is float32[?], but is fed int32[3]");
    x = points(3);
    x.shape.rank = 0;
    failed(tf_core.call_feed(call, 0, &x, &error), TF_DATA,
           "graph: feed 'x': is float32[?], but is fed float32[]");
    x = points(3);
    x.shape.dims[0] = -1;
    failed(tf_core.call_feed(call, 0, &x, &error), TF_USAGE, "graph: feed 'x': its shape is none");
    x = points(3);
    x.bytes = 8;
    failed(tf_core.call_feed(call, 0, &x, &error), TF_USAGE,
           "graph: feed 'x': float32[3] takes 12 bytes, not 8");
    x = points(2);
    x.data = (const char *)three + 1;
    failed(tf_core.call_feed(call, 0, &x, &error), TF_USAGE,
           "graph: feed 'x': its elements are not aligned");
    x.data = NULL;
    failed(tf_core.call_feed(call, 0, &x, &error), TF_USAGE,
           "graph: feed 'x': its elements are not given");
    failed(tf_core.call_fetch(call, 0, &x, &error), TF_USAGE,
           "graph: 'sum' has no value: no step was run that gave it one");
    failed(tf_core.call_fetch(call, 3, &x, &error), TF_USAGE,
           "graph: there is no fetch 3: there are 1");
    tf_core.call_free(call);
    lab_close(&lab);
}

static void test_a_step_that_fails(void **state)
{
    struct lab lab = lab_open("x = Placeholder() {dtype=float32, shape=[?]}\n"
                              "y = CheckNumerics(x) {message=\"bad\"}\n");
    tf_call *call = prepare(&lab, "x", "y", NULL);
    const float bad = (float)(0.0 / (double)(three[0] - 1));
    struct tf_tensor x = {TF_FLOAT32, {1, {1}}, &bad, sizeof bad};
    (void)state;
    ok(tf_core.call_feed(call, 0, &x, &error));
    assert_int_equal(tf_core.call_run(call, &error), TF_DATA);
    assert_non_null(strstr(error.text, "graph: step 1: node 'y': CheckNumerics: "));
    assert_int_equal(tf_core.call_fetch(call, 0, &x, &error), TF_USAGE);
    x = points(1);
    ok(tf_core.call_feed(call, 0, &x, &error));
    ok(tf_core.call_run(call, &error));
    tf_core.call_free(call);
    lab_close(&lab);
}

static void test_graphs_and_sessions_that_cannot_be(void **state)
{
    struct tf_session_options options = {.bytes = sizeof options + 8};
    struct lab lab = lab_open(LINE);
    (void)state;
    assert_null(tf_core.graph_open("none.tfg", &error));
    failed(error.code, TF_NOINPUT, "none.tfg: No such file or directory");
    assert_null(tf_core.graph_read("no graph at all", 15, &error));
    assert_int_equal(error.code, TF_DATA);
    assert_null(tf_core.graph_read(NULL, 0, &error));
    assert_int_equal(error.code, TF_DATA);
    assert_null(tf_core.session_new(NULL, NULL, &error));
    failed(error.code, TF_USAGE, "there is no graph");
    assert_null(tf_core.session_new(lab.graph, &options, &error));
    assert_int_equal(error.code, TF_USAGE);
    options = (struct tf_session_options){.bytes = sizeof options, .threads = -1};
    assert_null(tf_core.session_new(lab.graph, &options, &error));
    failed(error.code, TF_USAGE, "-1 threads make no sense");
    failed(tf_core.ops_load("x.so", &error), TF_USAGE,
           "x.so: ops are loaded before there is a graph");
    lab_close(&lab);
}

#define THREADS 4
#define STEPS 50

static void *train_in_thread(void *lab)
{
    train(lab, STEPS);
    return NULL;
}

static void test_threads_share_a_session(void **state)
{
    struct lab lab = lab_open(LINE);
    pthread_t threads[THREADS];
    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, train_in_thread, &lab), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(tf_core.session_step(lab.session), THREADS * STEPS);
    assert_true(value_of(&lab) == THREADS * STEPS);
    lab_close(&lab);
}

/* A pixel that is NaN, in a convolution of 32 channels: 9 cells see it, and their outputs are NaN.
 */
static const char pixel[] = "shape = Const() {dtype=int32, value=[1,16,16,32]}\n"
                            "window = Const() {dtype=int32, value=[3,3,32,32]}\n"
                            "cells = Const() {dtype=int32, value=[1,16,16,1]}\n"
                            "one = Const() {dtype=float32, value=1}\n"
                            "none = Const() {dtype=float32, value=nan}\n"
                            "place = Const() {dtype=int32, value=136}\n"
                            "count = Const() {dtype=int32, value=256}\n"
                            "hot = OneHot(place, count, none, one)\n"
                            "image = Reshape(hot, cells)\n"
                            "ones = Fill(shape, one)\n"
                            "x = Mul(ones, image)\n"
                            "f = Fill(window, one)\n"
                            "y = Conv2D(x, f) {strides=[1,1,1,1], padding=\"SAME\"}\n"
                            "isnan = IsNan(y)\n"
                            "each = Cast(isnan) {DstT=float32}\n"
                            "all = Const() {dtype=int32, value=[0,1,2,3]}\n"
                            "n = Sum(each, all)\n";

static void test_exact_sessions(void **state)
{
    (void)state;
    struct tf_session_options options = {.bytes = sizeof options, .threads = 1};
    for (int exact = 0; exact < 2; exact++) {
        struct lab lab = {.graph = graph_of(pixel)};
        options.exact = exact;
        lab.session = tf_core.session_new(lab.graph, &options, &error);
        assert_non_null(lab.session);
        tf_call *call = prepare(&lab, NULL, "n", NULL);
        ok(tf_core.call_run(call, &error));
        assert_true(exact ? number(call, 0) == 9 * 32 : number(call, 0) >= 9 * 32);
        tf_core.call_free(call);
        lab_close(&lab);
    }
}

/* Compiled programs depend on this layout: whoever changes it must change TF_TOOLS_ABI. */
static void test_the_interface_stays_as_it_is(void **state)
{
    (void)state;
    assert_int_equal(TF_TOOLS_ABI, 1);
    assert_int_equal(sizeof(struct tf_error), 4 + 1024);
    assert_int_equal(offsetof(struct tf_tensor, shape), 8);
    assert_int_equal(offsetof(struct tf_tensor, data), 80);
    assert_int_equal(sizeof(struct tf_tensor), 96);
    assert_int_equal(offsetof(struct tf_session_options, seed), 16);
    assert_int_equal(offsetof(struct tf_session_options, exact), 24);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_exact_sessions),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_what_ops_print),
        cmocka_unit_test(test_calls_that_cannot_be),
        cmocka_unit_test(test_feeds_that_do_not_fit),
        cmocka_unit_test(test_a_step_that_fails),
        cmocka_unit_test(test_graphs_and_sessions_that_cannot_be),
        cmocka_unit_test(test_threads_share_a_session),
        cmocka_unit_test(test_the_interface_stays_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
