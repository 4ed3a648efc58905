/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions behind the public library: what they give, what they refuse and how they say it,
 * and steps of several threads.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/core.h"
#include "base/file.h"
#include "graph/graph_io.h"
#include "graph/text.h"
#include "lib/unit.h"
#include "ops/ops.h"

#define LINE                                                                                       \
    "entry init = ^w/Assign\n"                                                                     \
    "entry train = ^add, sum\n"                                                                    \
    "x = Placeholder() {dtype=float32, shape=[?]}\n"                                               \
    "axis = Const() {dtype=int32, value=0}\n"                                                      \
    "sum = Sum(x, axis) {T=float32, Tidx=int32, keep_dims=false}\n"                                \
    "zero = Const() {dtype=float32, value=0}\n"                                                    \
    "w = Variable() {dtype=float32, shape=[]}\n"                                                   \
    "w/Assign = Assign(w, zero) {T=float32}\n"                                                     \
    "add = AssignAdd(w, sum) {T=float32}\n"

static struct tf_error error;

static void ok(int code)
{
    if (code)
        fail_msg("%s", error.text);
}

/* A failure with that code, whose line is that. */
static void failed(int code, int wanted, const char *line)
{
    assert_int_equal(code, wanted);
    assert_int_equal(error.code, wanted);
    assert_string_equal(error.text, line);
}

static tf_graph *graph_of(const char *text)
{
    struct error err = ERROR_INIT;
    struct graph *graph;
    size_t n;
    if (graph_parse_text(text, strlen(text), "t", ops_registry(), &graph, &err))
        fail_msg("%s", err.text);
    struct stream_writer *writer = stream_writer_new_memory("test", 1);
    assert_int_equal(graph_write(writer, graph, &err), 0);
    assert_int_equal(stream_finish(writer, &err), 0);
    const void *bytes = stream_writer_bytes(writer, &n);
    tf_graph *made = tf_core.graph_read(bytes, n, &error);
    if (!made)
        fail_msg("%s", error.text);
    stream_writer_free(writer);
    graph_free(graph);
    return made;
}

struct lab {
    tf_graph *graph;
    tf_session *session;
};

static struct lab lab_open(const char *text)
{
    struct tf_session_options options = {.bytes = sizeof options, .threads = 1};
    struct lab lab = {.graph = graph_of(text)};
    lab.session = tf_core.session_new(lab.graph, &options, &error);
    if (!lab.session)
        fail_msg("%s", error.text);
    ok(tf_core.session_init(lab.session, &error));
    return lab;
}

static void lab_close(struct lab *lab)
{
    tf_core.session_free(lab->session);
    tf_core.graph_free(lab->graph);
}

static tf_call *prepare(struct lab *lab, const char *feeds, const char *fetches,
                        const char *targets)
{
    tf_call *call = tf_core.call_prepare(lab->session, feeds, fetches, targets, &error);
    if (!call)
        fail_msg("%s", error.text);
    return call;
}

static float number(tf_call *call, int i)
{
    struct tf_tensor value;
    ok(tf_core.call_fetch(call, i, &value, &error));
    assert_int_equal(value.type, TF_FLOAT32);
    assert_int_equal(value.shape.rank, 0);
    assert_int_equal(value.bytes, 4);
    return *(const float *)value.data;
}

static const float three[] = {1, 2, 3};

static struct tf_tensor points(int n)
{
    return (struct tf_tensor){TF_FLOAT32, {1, {n}}, three, (size_t)n * sizeof *three};
}

static float value_of(struct lab *lab)
{
    tf_call *call = prepare(lab, NULL, "w", NULL);
    ok(tf_core.call_run(call, &error));
    float w = number(call, 0);
    tf_core.call_free(call);
    return w;
}

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
    ok(tf_core.call_run(call, &error)); /* it stays fed */
    assert_true(number(call, 1) == 6);
    x = points(2); /* of another shape */
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

static void train(struct lab *lab, int steps)
{
    tf_call *call = prepare(lab, "x", NULL, "train");
    struct tf_tensor x = points(1);
    ok(tf_core.call_feed(call, 0, &x, &error));
    for (int i = 0; i < steps; i++)
        ok(tf_core.call_run(call, &error));
    tf_core.call_free(call);
}

static void test_variables_as_files(void **state)
{
    char folder[] = "/tmp/tf-api.XXXXXX", file[100], none[100];
    struct lab lab = lab_open(LINE);
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/w.ckpt", folder);
    snprintf(none, sizeof none, "%s/none/w.ckpt", folder);
    train(&lab, 5);
    ok(tf_core.session_save(lab.session, file, &error));
    assert_int_equal(chmod(file, 0600), 0);
    train(&lab, 2);
    assert_true(value_of(&lab) == 7);
    ok(tf_core.session_restore(lab.session, file, &error));
    assert_int_equal(tf_core.session_step(lab.session), 5);
    assert_true(value_of(&lab) == 5);
    ok(tf_core.session_save(lab.session, file, &error)); /* in the place of another */
    struct stat status;
    assert_int_equal(stat(file, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(tf_core.session_save(lab.session, none, &error), TF_NOINPUT);
    assert_int_equal(tf_core.session_restore(lab.session, none, &error), TF_NOINPUT);
    assert_int_equal(truncate(file, status.st_size / 2), 0);
    assert_int_equal(tf_core.session_restore(lab.session, file, &error), TF_DATA);
    assert_true(value_of(&lab) == 5);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(folder), 0); /* nothing else was left in it */
    lab_close(&lab);
}

/* A link leads to what is replaced, and a pipe or a device is written to, not replaced. */
static void test_variables_where_a_file_leads(void **state)
{
    char folder[] = "/tmp/tf-api.XXXXXX", file[100], link[100], pipe[100], bytes[4096], start[4096];
    struct lab lab = lab_open(LINE);
    struct stat status;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/w.ckpt", folder);
    snprintf(link, sizeof link, "%s/link", folder);
    snprintf(pipe, sizeof pipe, "%s/pipe", folder);
    train(&lab, 3);
    ok(tf_core.session_save(lab.session, file, &error));
    assert_int_equal(symlink("w.ckpt", link), 0);
    train(&lab, 1);
    ok(tf_core.session_save(lab.session, link, &error));
    assert_int_equal(lstat(link, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    size_t n = file_read_part(file, 0, start, sizeof start);
    ok(tf_core.session_restore(lab.session, file, &error));
    assert_int_equal(tf_core.session_step(lab.session), 4);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    int fd = open(pipe, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ok(tf_core.session_save(lab.session, pipe, &error));
    assert_int_equal(lstat(pipe, &status), 0);
    assert_true(S_ISFIFO(status.st_mode));
    assert_true(n > 0 && n < sizeof start);
    assert_int_equal(read(fd, bytes, sizeof bytes), n);
    assert_memory_equal(bytes, start, n);
    close(fd);
    unlink(link), unlink(pipe), unlink(file);
    assert_int_equal(rmdir(folder), 0);
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

/* What programs were compiled with: whoever changes it changes TF_TOOLS_ABI. */
static void test_the_interface_stays_as_it_is(void **state)
{
    (void)state;
    assert_int_equal(TF_TOOLS_ABI, 1);
    assert_int_equal(sizeof(struct tf_error), 4 + 1024);
    assert_int_equal(offsetof(struct tf_tensor, shape), 8);
    assert_int_equal(offsetof(struct tf_tensor, data), 80);
    assert_int_equal(sizeof(struct tf_tensor), 96);
    assert_int_equal(offsetof(struct tf_session_options, seed), 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_what_ops_print),
        cmocka_unit_test(test_calls_that_cannot_be),
        cmocka_unit_test(test_feeds_that_do_not_fit),
        cmocka_unit_test(test_a_step_that_fails),
        cmocka_unit_test(test_variables_as_files),
        cmocka_unit_test(test_variables_where_a_file_leads),
        cmocka_unit_test(test_graphs_and_sessions_that_cannot_be),
        cmocka_unit_test(test_threads_share_a_session),
        cmocka_unit_test(test_the_interface_stays_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
