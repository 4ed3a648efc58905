/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/unit.h"

#include <string.h>
#include <time.h>

#include "exec/step/trace.h"
#include "show/shards.h"
#include "show/show.h"
#include "wire/record.h"

static void add_trace(struct trace_summary *summary, struct trace *trace)
{
    struct error err = ERROR_INIT;
    struct stream_writer *writer = stream_writer_new_memory("test", -1);
    assert_int_equal(trace_flush(trace, writer, &err), 0);
    assert_int_equal(stream_finish(writer, &err), 0);
    size_t n;
    const void *bytes = stream_writer_bytes(writer, &n);
    struct stream_reader *reader = stream_reader_new_memory(bytes, n, "test");
    struct record record = {0};
    bool more = true;
    while (!stream_read(reader, &record, &more, &err) && more)
        assert_int_equal(trace_summary_add(summary, &record, &err), 0);
    assert_int_equal(err.code, 0);
    record_release(&record);
    stream_reader_free(reader);
    stream_writer_free(writer);
}

/* Two steps of 1 ms. The first call of MatMul counts as the first step's only, as there is a
 * second; concurrent work fills the step once; work before the first step is not counted. */
static void a_trace_adds_up(void **unused)
{
    (void)unused;
    struct trace *trace = trace_new();
    trace_kernel(trace, 0, &(struct trace_run){"i", "k", "Relu", 0, 9000000, NULL});
    trace_kernel(trace, 1, &(struct trace_run){"b", "k", "Relu", 10000000, 10200000, NULL});
    trace_kernel(trace, 1, &(struct trace_run){"a", "k", "MatMul", 10000000, 10500000, NULL});
    trace_kernel(trace, 1, &(struct trace_run){.start = 10000000, .end = 11000000});
    trace_kernel(trace, 2, &(struct trace_run){"c", "k", "MatMul", 11000000, 11700000, NULL});
    trace_kernel(trace, 2, &(struct trace_run){.start = 11000000, .end = 12000000});
    struct trace_summary *summary = trace_summary_new();
    add_trace(summary, trace);
    struct str text = STR_INIT;
    trace_summary_print(summary, &text);
    assert_non_null(strstr(str_text(&text), "trace   2 steps  median 1.00 ms  p90 1.00 ms  "
                                            "in kernels 60%  1 thread\nOP "));
    const char *matmul = strstr(str_text(&text), "\nMatMul "), *relu = strstr(matmul, "\nRelu ");
    assert_non_null(strstr(matmul, "  1.40 ms  88%    2      0.70 ms  c\n"));
    assert_non_null(strstr(relu, "  0.20 ms  12%    1      0.20 ms  b\n"));
    str_clear(&text);
    trace_summary_print_costs(summary, &text);
    assert_string_equal(str_text(&text),
                        "node a 500000\nnode b 200000\nnode c 700000\nnode i 9000000\n"
                        "op MatMul 700000\nop Relu 200000\n");
    str_release(&text);
    trace_summary_free(summary);
    trace_free(trace);
}

/* In the first step kernels also do one-time work: it does not count, unless there is no other. A
 * node is counted by steps, an op by calls. */
static void costs_are_of_later_steps(void **unused)
{
    (void)unused;
    struct trace *trace = trace_new();
    trace_kernel(trace, 1, &(struct trace_run){"once", "k", "Relu", 0, 100000, NULL});
    trace_kernel(trace, 1, &(struct trace_run){"a", "k", "MatMul", 0, 90000, NULL});
    trace_kernel(trace, 2, &(struct trace_run){"a", "k", "MatMul", 0, 100, NULL});
    trace_kernel(trace, 2, &(struct trace_run){"a", "k", "MatMul", 0, 200, NULL});
    trace_kernel(trace, 2, &(struct trace_run){"late", "k", "MatMul", 0, 7000, NULL});
    trace_kernel(trace, 3, &(struct trace_run){"a", "k", "MatMul", 0, 400, NULL});
    struct trace_summary *summary = trace_summary_new();
    add_trace(summary, trace);
    struct str text = STR_INIT;
    trace_summary_print_costs(summary, &text);
    assert_string_equal(str_text(&text), "node a 350\nnode late 7000\nnode once 100000\n"
                                         "op MatMul 1925\nop Relu 100000\n");
    str_release(&text);
    trace_summary_free(summary);
    trace_free(trace);
}

/* Each node has an op of its own: finding an op's slowest node must not search them all. */
static void a_large_trace_takes_no_longer_than_its_size(void **unused)
{
    (void)unused;
    enum { EVENTS = 200000 };
    static char nodes[EVENTS][16], ops[EVENTS][16];
    struct trace *trace = trace_new();
    for (int i = 0; i < EVENTS; i++) {
        snprintf(nodes[i], sizeof nodes[i], "n%d", i);
        snprintf(ops[i], sizeof ops[i], "Op%d", i);
        trace_kernel(trace, 1, &(struct trace_run){nodes[i], "k", ops[i], i, i + 1000000, NULL});
    }
    struct trace_summary *summary = trace_summary_new();
    add_trace(summary, trace);
    struct str text = STR_INIT;
    clock_t start = clock();
    trace_summary_print(summary, &text);
    assert_true(clock() - start < 5 * CLOCKS_PER_SEC); /* quadratic: minutes */
    assert_non_null(strstr(str_text(&text), "  n199999\n"));
    str_release(&text);
    trace_summary_free(summary);
    trace_free(trace);
}

static struct tensor make(const char *literal, enum dtype type)
{
    struct tensor t;
    struct error err = ERROR_INIT;
    assert_non_null(tensor_parse(&t, literal, type, &err));
    return t;
}

static void assert_shown(const char *literal, enum dtype type, const char *summary,
                         const char *elements, const char *json)
{
    struct tensor t = make(literal, type);
    struct str text = STR_INIT;
    show_summary(&text, &t);
    assert_string_equal(str_text(&text), summary);
    str_clear(&text);
    show_elements(&text, &t, 3);
    assert_string_equal(str_text(&text), elements);
    str_clear(&text);
    show_json_tensor(&text, &t);
    assert_string_equal(str_text(&text), json);
    str_release(&text);
    tensor_release(&t);
}

static void tensors_as_text(void **unused)
{
    (void)unused;
    assert_shown("[[1,2],[3,5]]", INT32, "min 1 max 5 mean 2.75", "1 2 3 ...", "[[1,2],[3,5]]");
    assert_shown("[0.1,nan,inf,-inf]", FLOAT32, "min 0.1 max 0.1 mean 0.1 nan 1 inf 2",
                 "0.1 nan inf ...", "[0.1,\"NaN\",\"Infinity\",\"-Infinity\"]");
    assert_shown("0.1", FLOAT64, "min 0.1 max 0.1 mean 0.1", "0.1", "0.1");
    assert_shown("[[[1]],[[2]]]", INT64, "min 1 max 2 mean 1.5", "1 2", "[[[1]],[[2]]]");
    assert_shown("[true,false]", BOOL, "min 0 max 1 mean 0.5", "true false", "[true,false]");
    assert_shown("[\"a\\\"b\"]", STRING, "", "\"a\\\"b\"", "[\"a\\\"b\"]");
}

static void empty_tensors(void **unused)
{
    (void)unused;
    struct tensor t;
    struct error err = ERROR_INIT;
    struct str text = STR_INIT;
    struct shape shape = shape_matrix(1, 0);
    assert_int_equal(tensor_alloc(&t, FLOAT32, &shape, &err), 0);
    show_summary(&text, &t);
    assert_string_equal(str_text(&text), "empty");
    str_clear(&text);
    show_json_tensor(&text, &t);
    assert_string_equal(str_text(&text), "[[]]");
    str_release(&text);
    tensor_release(&t);
}

static void pack_word(msgpack_packer *packer, const char *word)
{
    msgpack_pack_str_with_body(packer, word, strlen(word));
}

static void assert_status(const char *failed, const char *line)
{
    const struct shard_view *view = shard_view_find("status");
    struct str rows = STR_INIT, out = STR_INIT;
    msgpack_sbuffer bytes;
    msgpack_packer packer;
    msgpack_unpacked reply;
    msgpack_sbuffer_init(&bytes);
    msgpack_packer_init(&packer, &bytes, msgpack_sbuffer_write);
    msgpack_pack_map(&packer, 2);
    pack_word(&packer, "pid");
    msgpack_pack_int(&packer, 7);
    pack_word(&packer, "failed");
    pack_word(&packer, failed);
    msgpack_unpacked_init(&reply);
    assert_int_equal(msgpack_unpack_next(&reply, bytes.data, bytes.size, NULL),
                     MSGPACK_UNPACK_SUCCESS);
    shard_view_add(view, false, "ps:0", &reply.data, &rows);
    shard_view_print(view, &rows, &out);
    assert_string_equal(str_text(&out), line);
    msgpack_unpacked_destroy(&reply);
    msgpack_sbuffer_destroy(&bytes);
    str_release(&rows);
    str_release(&out);
}

static void a_status_says_why_an_update_failed(void **unused)
{
    (void)unused;
    assert_status("", "ps:0 pid=7 incarnation=- up=- still=- step=- workers=- saved=-\n");
    assert_status("ps:1: lost", "ps:0 pid=7 incarnation=- up=- still=- step=- workers=- saved=- "
                                "failed=ps:1: lost\n");
    assert_status("two\nlines", "ps:0 pid=7 incarnation=- up=- still=- step=- workers=- saved=- "
                                "failed=?\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trace_adds_up),
        cmocka_unit_test(costs_are_of_later_steps),
        cmocka_unit_test(a_large_trace_takes_no_longer_than_its_size),
        cmocka_unit_test(tensors_as_text),
        cmocka_unit_test(empty_tensors),
        cmocka_unit_test(a_status_says_why_an_update_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
