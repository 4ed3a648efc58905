/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of the public library's functions: a session on a small graph, and numbers out of it.
 */
#ifndef TF_TESTS_LIB_API_LAB_H
#define TF_TESTS_LIB_API_LAB_H

#include <string.h>

#include "api/core.h"
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

static inline void ok(int code)
{
    if (code)
        fail_msg("%s", error.text);
}

/* Asserts that a call failed with that code and message. */
static inline void failed(int code, int wanted, const char *line)
{
    assert_int_equal(code, wanted);
    assert_int_equal(error.code, wanted);
    assert_string_equal(error.text, line);
}

static inline tf_graph *graph_of(const char *text)
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

static inline struct lab lab_open(const char *text)
{
    struct tf_session_options options = {.bytes = sizeof options, .threads = 1};
    struct lab lab = {.graph = graph_of(text)};
    lab.session = tf_core.session_new(lab.graph, &options, &error);
    if (!lab.session)
        fail_msg("%s", error.text);
    ok(tf_core.session_init(lab.session, &error));
    return lab;
}

static inline void lab_close(struct lab *lab)
{
    tf_core.session_free(lab->session);
    tf_core.graph_free(lab->graph);
}

static inline tf_call *prepare(struct lab *lab, const char *feeds, const char *fetches,
                               const char *targets)
{
    tf_call *call = tf_core.call_prepare(lab->session, feeds, fetches, targets, &error);
    if (!call)
        fail_msg("%s", error.text);
    return call;
}

static inline float number(tf_call *call, int i)
{
    struct tf_tensor value;
    ok(tf_core.call_fetch(call, i, &value, &error));
    assert_int_equal(value.type, TF_FLOAT32);
    assert_int_equal(value.shape.rank, 0);
    assert_int_equal(value.bytes, 4);
    return *(const float *)value.data;
}

static const float three[] = {1, 2, 3};

static inline struct tf_tensor points(int n)
{
    return (struct tf_tensor){TF_FLOAT32, {1, {n}}, three, (size_t)n * sizeof *three};
}

static inline float value_of(struct lab *lab)
{
    tf_call *call = prepare(lab, NULL, "w", NULL);
    ok(tf_core.call_run(call, &error));
    float w = number(call, 0);
    tf_core.call_free(call);
    return w;
}

static inline void train(struct lab *lab, int steps)
{
    tf_call *call = prepare(lab, "x", NULL, "train");
    struct tf_tensor x = points(1);
    ok(tf_core.call_feed(call, 0, &x, &error));
    for (int i = 0; i < steps; i++)
        ok(tf_core.call_run(call, &error));
    tf_core.call_free(call);
}

#endif
