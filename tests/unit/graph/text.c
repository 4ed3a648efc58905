/* SPDX-License-Identifier: Apache-2.0
 *
 * The text form and the records of graphs: round trips, and errors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "graph/frames.h"
#include "graph/graph_io.h"
#include "graph/text.h"
#include "lib/test_ops.h"

static struct graph *parse(const char *text)
{
    struct graph *graph = NULL;
    struct error err = ERROR_INIT;
    if (graph_parse_text(text, strlen(text), "t", test_registry(), &graph, &err))
        fail_msg("%s", err.text);
    return graph;
}

static struct str print(const struct graph *graph)
{
    struct str out = STR_INIT;
    struct error err = ERROR_INIT;
    if (graph_print_text(&out, graph, NULL, &err))
        fail_msg("%s", err.text);
    return out;
}

static struct graph *through_record(const struct graph *graph)
{
    struct error err = ERROR_INIT;
    struct stream_writer *writer = stream_writer_new_memory("test", 1);
    struct graph *copy = NULL;
    size_t n;
    if (graph_write(writer, graph, &err) || stream_finish(writer, &err))
        fail_msg("%s", err.text);
    const void *bytes = stream_writer_bytes(writer, &n);
    struct stream_reader *reader = stream_reader_new_memory(bytes, n, "memory");
    if (graph_read(reader, test_registry(), &copy, &err))
        fail_msg("%s", err.text);
    stream_reader_free(reader);
    stream_writer_free(writer);
    return copy;
}

/* Printing gives the canonical text, before and after a trip through a record. */
static void expect_canonical(const char *text, const char *canonical)
{
    struct graph *graph = parse(text), *copy = through_record(graph);
    struct str first = print(graph), second = print(copy);
    assert_string_equal(str_text(&first), canonical);
    assert_string_equal(str_text(&second), canonical);
    struct graph *again = parse(canonical);
    struct str third = print(again);
    assert_string_equal(str_text(&third), canonical);
    str_release(&first);
    str_release(&second);
    str_release(&third);
    graph_free(graph);
    graph_free(copy);
    graph_free(again);
}

static void test_nodes_entries_aliases_provenance(void **state)
{
    (void)state;
    const char *text =
        "graph 1\n"
        "made tf-graph 1.0 a b.lua\n"
        "made \"odd\\n\"\n"
        "entry train = ^n, b:1\n"
        "entry nothing =\n"
        "alias other = b:1\n"
        "x = Placeholder() {dtype=float32, shape=[?,64]} : float32[?,64] at my model.lua:3\n"
        "b = Both(x) {T=float32} @?/job:ps @/job:ps/task:0/device:CPU:0 : float32 at m:7\n"
        "n = NoOp(^x, ^b)\n"
        "w = Variable() {dtype=int64, shape=[]} @?/job:ps/task:1\n";
    expect_canonical(
        text, "graph 1\n"
              "made tf-graph 1.0 a b.lua\n"
              "made \"odd\\n\"\n"
              "entry train = ^n, b:1\n"
              "entry nothing =\n"
              "alias other = b:1\n"
              "x = Placeholder() {dtype=float32, shape=[?,64]} : float32[?,64] at my model.lua:3\n"
              "b = Both(x) {T=float32} @?/job:ps @/job:ps/task:0/device:CPU:0 : "
              "float32[?,64], float32[?,64] at m:7\n"
              "n = NoOp(^x, ^b)\n"
              "w = Variable() {dtype=int64, shape=[]} @?/job:ps/task:1 : int64[]\n");
}

static void test_order_is_topological(void **state)
{
    (void)state;
    expect_canonical("z = Add(y, x)\n# a comment\n\n"
                     "y = Identity(x)\r\n"
                     "x = Const() {dtype=float32, value=1}\n",
                     "graph 1\n"
                     "x = Const() {dtype=float32, value=1} : float32[]\n"
                     "y = Identity(x) {T=float32} : float32[]\n"
                     "z = Add(y, x) {T=float32} : float32[]\n");
}

static void test_attributes_of_every_kind(void **state)
{
    (void)state;
    expect_canonical(
        "x = Const() {dtype=float32, value=[]}\n"
        "a = Kinds(x)\n"
        "b = Kinds(a) {b=false, f=1, h=?, i=-4, lb=[true,false], lf=[1,0.25], lh=[[1,?],?,[]],"
        "li=[1,2], ls=[\"a,b\",\"}\"], lt=[int32,string], s=\"\\\"\", t=bool, _i=7,"
        "_class=[\"loc:@a\"], _f=1.5, _b=true, _t=int8, _h:shape=[2,3], _e:list(string)=[],"
        "_l=[1,2], _x:float=inf, _v:tensor=int64[2]([1,2])}\n",
        "graph 1\n"
        "x = Const() {dtype=float32, value=float32[0]()} : float32[0]\n"
        "a = Kinds(x) {T=float32, b=true, f=0.5, h=[2,?], i=3, lb=[], lf=[], lh=[], li=[], ls=[], "
        "lt=[], s=\"x\", t=float32} : float32[0]\n"
        "b = Kinds(a) {T=float32, _b=true, _class=[\"loc:@a\"], _e:list(string)=[], _f=1.5, "
        "_h:shape=[2,3], _i=7, _l=[1,2], _t=int8, _v:tensor=int64[2]([1,2]), _x:float=inf, "
        "b=false, f=1.0, h=?, i=-4, lb=[true,false], lf=[1.0,0.25], lh=[[1,?],?,[]], li=[1,2], "
        "ls=[\"a,b\",\"}\"], lt=[int32,string], s=\"\\\"\", t=bool} : float32[0]\n");
}

static void test_constants(void **state)
{
    (void)state;
    expect_canonical("a = Const() {dtype=float32, value=[[0.1,-0,1e-30],[nan,inf,-inf]]}\n"
                     "b = Const() {dtype=float32, value=float32[3,0,2]()}\n"
                     "c = Const() {dtype=int32, value=int32[4,5](7)}\n"
                     "d = Const() {dtype=string, value=[\"a\\n\",\"\"]}\n"
                     "e = Const() {dtype=int32, value=int32[2](7)}\n",
                     "graph 1\n"
                     "a = Const() {dtype=float32, value=[[0.1,-0,1e-30],[nan,inf,-inf]]} : "
                     "float32[2,3]\n"
                     "b = Const() {dtype=float32, value=float32[3,0,2]()} : float32[3,0,2]\n"
                     "c = Const() {dtype=int32, value=int32[4,5](7)} : int32[4,5]\n"
                     "d = Const() {dtype=string, value=[\"a\\n\",\"\"]} : string[2]\n"
                     "e = Const() {dtype=int32, value=[7,7]} : int32[2]\n");
}

static void test_loop(void **state)
{
    (void)state;
    expect_canonical("i = Const() {dtype=int32, value=0}\n"
                     "e = Enter(i) {frame_name=\"w\"}\n"
                     "m = Merge(e, next)\n"
                     "ten = Const(^m) {dtype=int32, value=10}\n"
                     "less = Less(m, ten)\n"
                     "c = LoopCond(less)\n"
                     "s = Switch(m, c)\n"
                     "body = Add(s:1, ten)\n"
                     "next = NextIteration(body)\n"
                     "out = Exit(s)\n",
                     "graph 1\n"
                     "i = Const() {dtype=int32, value=0} : int32[]\n"
                     "e = Enter(i) {T=int32, frame_name=\"w\", is_constant=false, "
                     "parallel_iterations=10} : int32[]\n"
                     "m = Merge(e, next) {N=2, T=int32} : int32[], int32[]\n"
                     "ten = Const(^m) {dtype=int32, value=10} : int32[]\n"
                     "less = Less(m, ten) {T=int32} : bool[]\n"
                     "c = LoopCond(less) : bool[]\n"
                     "s = Switch(m, c) {T=int32} : int32[], int32[]\n"
                     "body = Add(s:1, ten) {T=int32} : int32[]\n"
                     "next = NextIteration(body) {T=int32} : int32[]\n"
                     "out = Exit(s) {T=int32} : int32[]\n");
}

static void expect_refused(const char *text, const char *message)
{
    struct graph *graph = NULL;
    struct error err = ERROR_INIT;
    assert_int_not_equal(graph_parse_text(text, strlen(text), "t", test_registry(), &graph, &err),
                         0);
    if (!strstr(err.text, message))
        fail_msg("'%s' lacks '%s'", err.text, message);
}

static void test_what_is_wrong_is_refused_with_a_line(void **state)
{
    (void)state;
    expect_refused("x", "t:1: '=' expected, but the line ends");
    expect_refused(
        "\nx = Identiti(x)",
        "t:2: node 'x': unknown op 'Identiti' (did you mean 'Identity'?); ops of your own "
        "come with --ops FILE.so");
    expect_refused("x = Placeholder() {dtype=float32}\ny = Identity(z)",
                   "t:2: node 'y': there is no node 'z'");
    expect_refused("first = Placeholder() {dtype=float32}\ny = Identity(frist)",
                   "(did you mean 'first'?)");
    expect_refused(
        "x = Placeholder() {dtype=float32, shap=[1]}",
        "t:1: node 'x': Placeholder: there is no attribute 'shap' (did you mean 'shape'?)");
    expect_refused("x = Placeholder() {}", "attribute 'dtype' is missing");
    expect_refused("x = Placeholder() {dtype=float33}",
                   "t:1: node 'x': Placeholder: attribute 'dtype'");
    expect_refused("x = NoOp()\nx = NoOp()", "t:2: node 'x': there are two nodes of this name");
    expect_refused("x = NoOp(^y)\ny = NoOp(^x)", "the graph has a cycle: x <- y <- x");
    expect_refused("x = NoOp(^x)", "the graph has a cycle: x <- x");
    expect_refused("x = NoOp() @/cpu:0", "to ask for a device write '@?/device:CPU:0'");
    expect_refused("x = NoOp() @?/jub:0", "t:1: device '/jub:0': unknown part 'jub'");
    expect_refused("x = NoOp() {_class=[\"loc:@w\"]}", "is to be with 'w', which does not exist");
    expect_refused("entry e = y\nx = NoOp()", "t:1: entry 'e': there is no node 'y'");
    expect_refused("entry e = x\nx = NoOp()", "t:1: entry 'e': 'x': node 'x' has 0 outputs");
    expect_refused("alias x = y\nx = NoOp()\ny = Const() {dtype=float32, value=1}", "alias 'x'");
    expect_refused("graph 2\n", "t:1: the text form has version 2");
    expect_refused("x = NoOp() : float32[2", "t:1: a type expected at 'float32[2'");
    expect_refused("x = NoOp() rubbish", "t:1: the end of the line expected at 'rubbish'");
    expect_refused("x = Const() {dtype=float32, value=float32[2](1,2)}", "')' expected");
    expect_refused("x = NoOp() {_i=99999999999999999999}", "an integer of 64 bits at '9999");
    expect_refused("x = Const() {dtype=float32, value=float32[2]([1,2,3])}", "shape [3] where [2]");
    expect_refused("x = Const() {dtype=float32, value=float32[9999999,9999999](1)}", "too large");
    expect_refused("x = Const() {dtype=int32, value=1}\ny = Later.3(x)",
                   "t:2: node 'y': Later has version 3; this program knows version 2");
    expect_refused("x = Const() {dtype=bool, value=true}\ny = Add(x, x)",
                   "t:2: node 'y': Add: input 'x' is bool, but must be one of float32");
}

static void test_frames_are_checked(void **state)
{
    (void)state;
    expect_refused("x = Const() {dtype=int32, value=1}\ne = Enter(x) {frame_name=\"w\"}\n"
                   "y = Add(e, x)\n",
                   "node 'y': Add: inputs of one node must come from one loop, but 'e' is in loop "
                   "'w' and 'x' is outside of loops");
    expect_refused("x = Const() {dtype=int32, value=1}\ny = Exit(x)\n",
                   "node 'y': Exit: is not in a loop");
    expect_refused("x = Const() {dtype=int32, value=1}\ny = Enter(x) {frame_name=\"\"}\n",
                   "frame_name is empty");
    /* a loop that counts; `u` would come round whether it counts or not */
    const char *loop = "i = Const() {dtype=int32, value=0}\ne = Enter(i) {frame_name=\"w\"}\n"
                       "k = Enter(i) {frame_name=\"w\", is_constant=true}\n"
                       "m = Merge(e, next)\nc = LoopCond(Less)\nLess = Less(m, k)\n"
                       "s = Switch(m, c)\nnext = NextIteration(%s)\nu = Add(k, k%s)\nx = Exit(s)\n";
    char text[512];
    snprintf(text, sizeof text, loop, "u", "");
    expect_refused(text, "node 'next': NextIteration: the loop would never end");
    snprintf(text, sizeof text, loop, "s:1", "");
    graph_free(parse(text));
    snprintf(text, sizeof text, loop, "u", ", ^s");
    graph_free(parse(text));
}

static struct graph *chain(int n)
{
    struct graph *graph = graph_new(test_registry());
    struct error err = ERROR_INIT;
    struct build b = {.graph = graph, .err = &err, .scope = "a/long/scope", .file = "m.lua"};
    struct edge x = build_scalar(&b, FLOAT32, 1);
    for (int i = 1; i < n; i++)
        x = build_binary(&b, "Add", x, (struct edge){i / 2, 0});
    assert_false(b.err->code);
    return graph;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Each sum runs if one more branch is taken than for the sum before. */
static void test_each_sum_has_one_condition_more(void **state)
{
    enum { SUMS = 300 };
    struct error err = ERROR_INIT;
    struct str text = STR_INIT;
    struct frames *frames;
    (void)state;
    str_append(&text, "x = Const() {dtype=float32, value=1.0}\ny0 = Identity(x)\n");
    for (int i = 1; i <= SUMS; i++)
        str_printf(&text,
                   "q%d = Less(x, x)\ns%d = Switch(x, q%d)\n"
                   "y%d = Add(s%d:1, y%d)\n",
                   i, i, i, i, i, i - 1);
    struct graph *graph = parse(str_text(&text));
    assert_int_equal(frames_new(graph, &frames, &err), 0);
    assert_true(frames->conditions.n <= 2 * SUMS);
    frames_free(frames);
    graph_free(graph);
    str_release(&text);
}

static void test_large_graphs_are_quick(void **state)
{
    (void)state;
    struct graph *graph = chain(100000);
    struct error err = ERROR_INIT;
    double t0 = seconds();
    struct stream_writer *writer = stream_writer_new_memory("test", 1);
    size_t n;
    assert_int_equal(graph_write(writer, graph, &err), 0);
    assert_int_equal(stream_finish(writer, &err), 0);
    const void *bytes = stream_writer_bytes(writer, &n);
    double t1 = seconds();
    struct stream_reader *reader = stream_reader_new_memory(bytes, n, "memory");
    struct graph *copy = NULL;
    assert_int_equal(graph_read(reader, test_registry(), &copy, &err), 0);
    double t2 = seconds();
    struct str text = print(copy);
    double t3 = seconds();
    graph_free(copy);
    copy = parse(str_text(&text));
    double t4 = seconds();
    assert_int_equal(copy->nodes.n, graph->nodes.n);
    print_message("100,000 nodes: write %.3f s, read %.3f s, print %.3f s, parse %.3f s\n", t1 - t0,
                  t2 - t1, t3 - t2, t4 - t3);
    assert_true(t4 - t0 < 20); /* far above what is expected, for slow machines and sanitizers */
    str_release(&text);
    graph_free(copy);
    stream_reader_free(reader);
    stream_writer_free(writer);
    graph_free(graph);
}

/* Each type is read once, however long the line is. */
static void test_a_line_of_many_types_is_quick(void **state)
{
    enum { TYPES = 1000000 };
    struct str text = STR_INIT;
    (void)state;
    str_append(&text, "x = Both(y) : float32[2]");
    for (int i = 1; i < TYPES; i++)
        str_append(&text, ", float32[]");
    str_append(&text, "\ny = Placeholder() {dtype=float32, shape=[2]}\n");
    double begun = seconds();
    expect_refused(str_text(&text), "t:1: node 'x': is said to be float32[2], float32[], ");
    assert_true(seconds() - begun < 20); /* as above */
    str_release(&text);
}

static void test_records_of_other_kinds_are_refused(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct graph *graph = NULL;
    struct stream_writer *writer = stream_writer_new_memory("test", 1);
    size_t n;
    stream_begin(writer, RECORD_STEP, 0);
    assert_int_equal(stream_write(writer, NULL, 0, &err), 0);
    assert_int_equal(stream_finish(writer, &err), 0);
    const void *bytes = stream_writer_bytes(writer, &n);
    struct stream_reader *reader = stream_reader_new_memory(bytes, n, "in.rec");
    assert_int_equal(graph_read(reader, test_registry(), &graph, &err), ERR_DATA);
    assert_string_equal(err.text, "in.rec: a graph is expected, not a 'step' record");
    error_clear(&err);
    assert_int_equal(graph_read(reader, test_registry(), &graph, &err), ERR_NOINPUT);
    stream_reader_free(reader);
    stream_writer_free(writer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes_entries_aliases_provenance),
        cmocka_unit_test(test_order_is_topological),
        cmocka_unit_test(test_attributes_of_every_kind),
        cmocka_unit_test(test_constants),
        cmocka_unit_test(test_loop),
        cmocka_unit_test(test_what_is_wrong_is_refused_with_a_line),
        cmocka_unit_test(test_frames_are_checked),
        cmocka_unit_test(test_each_sum_has_one_condition_more),
        cmocka_unit_test(test_large_graphs_are_quick),
        cmocka_unit_test(test_a_line_of_many_types_is_quick),
        cmocka_unit_test(test_records_of_other_kinds_are_refused),
    };
    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
