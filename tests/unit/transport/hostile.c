/* SPDX-License-Identifier: Apache-2.0
 *
 * Well-formed input that does harm: small inputs that ask for much time, memory or stack. Each test
 * ends by itself within seconds, or by SIGALRM.
 */
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "graph/graph_io.h"
#include "graph/text.h"
#include "lib/unit.h"
#include "ops/ops.h"
#include "show/show.h"
#include "wire/csv.h"

#define SECONDS 60 /* a sanitizer on a busy machine is slow; the bugs took hours */

static int parse(const struct str *text, struct graph **graph, struct error *err)
{
    *graph = NULL;
    alarm(SECONDS);
    return graph_parse_text(text->data, text->n, "t", ops_registry(), graph, err);
}

static struct graph *must_parse(struct str *text)
{
    struct graph *graph;
    struct error err = ERROR_INIT;
    if (parse(text, &graph, &err))
        fail_msg("%s", err.text);
    str_release(text);
    return graph;
}

static void expect_refused(struct str *text, const char *why)
{
    struct graph *graph;
    struct error err = ERROR_INIT;
    assert_int_equal(parse(text, &graph, &err), ERR_DATA);
    if (!strstr(err.text, why))
        fail_msg("expected '%s' in: %s", why, err.text);
    assert_null(strchr(err.text, '\n'));
    str_release(text);
}

/* n0 + n0 = n1, n1 + n1 = n2, ...: 2^100 paths to the length of a vector. */
static void known_values_are_searched_for_a_bounded_time(void **state)
{
    (void)state;
    struct str text = STR_INIT;
    str_append(&text, "n0 = Placeholder() {dtype=int32, shape=[1]}\n");
    for (int i = 1; i <= 100; i++)
        str_printf(&text, "n%d = Add(n%d, n%d)\n", i, i - 1, i - 1);
    str_append(&text, "v = Const() {dtype=float32, value=0}\ny = Fill(n100, v)\n");
    struct graph *graph = must_parse(&text);
    assert_int_equal(graph_find(graph, "y")->outputs[0].shape.rank, 1);
    graph_free(graph);
}

static void conditions_have_a_greatest_depth(void **state)
{
    (void)state;
    struct str text = STR_INIT;
    str_append(&text, "s0 = Placeholder() {dtype=float32, shape=[]}\n");
    for (int i = 1; i <= 200000; i++)
        str_printf(&text,
                   "p%d = Placeholder() {dtype=bool, shape=[]}\n"
                   "s%d = Switch(s%d, p%d)\n",
                   i, i, i - 1, i);
    expect_refused(&text, "conditions are nested too deep");
}

static void many_conditions_side_by_side_are_fine(void **state)
{
    (void)state;
    const int n = 50000;
    struct str text = STR_INIT;
    str_append(&text, "x = Placeholder() {dtype=float32, shape=[]}\n");
    for (int i = 0; i < n; i++)
        str_printf(&text,
                   "p%d = Placeholder() {dtype=bool, shape=[]}\n"
                   "s%d = Switch(x, p%d)\ny%d = Neg(s%d:1)\n",
                   i, i, i, i, i);
    struct graph *graph = must_parse(&text);
    assert_int_equal(graph->nodes.n, 1 + 3 * n);
    graph_free(graph);
}

static void controls_cost_memory_by_their_number(void **state)
{
    (void)state;
    const int n = 20000;
    struct str text = STR_INIT;
    for (int i = 0; i < n; i++)
        str_printf(&text, "a%d = NoOp()\n", i);
    str_append(&text, "all = NoOp(");
    for (int i = n - 1; i >= 0; i--)
        str_printf(&text, "^a%d, ^a%d%s", i, i, i ? ", " : ")\n");
    struct graph *graph = must_parse(&text);
    const struct node *all = graph_find(graph, "all");
    assert_int_equal(all->n_controls, n);
    for (int i = 0; i < n; i++)
        assert_int_equal(all->controls[i], i);
    assert_true(graph->arena.total < (size_t)64 << 20);
    graph_free(graph);
}

static void many_entries_are_read_in_time(void **state)
{
    (void)state;
    const int n = 200000;
    struct str text = STR_INIT;
    str_append(&text, "a = NoOp()\n");
    for (int i = 0; i < n; i++)
        str_printf(&text, "entry e%d = ^a\n", i);
    struct graph *graph = must_parse(&text);
    assert_int_equal(graph->entries.n, n);
    assert_ptr_equal(graph_entry(graph, "e7"), &graph->entries.items[7]);
    graph_free(graph);
}

static void long_lines_are_read_in_time(void **state)
{
    (void)state;
    struct str text = STR_INIT;
    str_append(&text, "a = NoOp() {_x:list(shape)=[[1]");
    for (int i = 0; i < 500000; i++)
        str_append(&text, ",[1]");
    str_append(&text, "]}\n");
    struct graph *graph = must_parse(&text);
    assert_int_equal(node_attr(graph_find(graph, "a"), "_x")->n, 500001);
    graph_free(graph);
}

static void names_have_a_greatest_length_and_the_message_its_cause(void **state)
{
    (void)state;
    struct str text = STR_INIT;
    for (int i = 0; i < 1000000; i++)
        str_append_char(&text, 'x');
    str_append(&text, " = NoOp()\n");
    expect_refused(&text, "is not a valid node name");
    str_append(&text, "a = NoOp() {_x=\"a\\x00b\"}\n");
    expect_refused(&text, "NUL");

    struct error err = ERROR_INIT;
    char *longest = mem_alloc(3000);
    memset(longest, 'n', 2999);
    error_set(&err, ERR_DATA, "the cause");
    error_prefix(&err, "node '%s': ", longest);
    error_prefix(&err, "file.tfg: ");
    assert_int_equal(strncmp(err.text, "file.tfg: node 'nnn", 19), 0);
    assert_non_null(strstr(err.text, "n...: the cause"));
    mem_free(longest);
}

static void free_attributes_have_names_that_the_text_form_has(void **state)
{
    (void)state;
    static const char *const names[] = {"_a b", "_a=1}\ny", "_\x1b[2J", "_ä"};
    struct graph *graph = graph_new(ops_registry());
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct attr attr = {names[i], attr_int(1)};
        struct node_spec spec = {.op = "NoOp", .attrs = &attr, .n_attrs = 1};
        struct error err = ERROR_INIT;
        assert_null(graph_add(graph, &spec, &err));
        assert_int_equal(err.code, ERR_DATA);
    }
    struct attr twice[] = {{"_a", attr_int(1)}, {"_b", attr_int(1)}, {"_a", attr_int(2)}};
    struct node_spec spec = {.op = "NoOp", .attrs = twice, .n_attrs = 3};
    struct error err = ERROR_INIT;
    assert_null(graph_add(graph, &spec, &err));
    unit_assert_error(err.code, err, ERR_DATA, "node 'NoOp': NoOp: attribute '_a' is given twice");
    graph_free(graph);
}

/* ---- records ---- */

static void pack_const(msgpack_packer *packer, const char *name, int tensor)
{
    msgpack_pack_map(packer, 3);
    pack_key(packer, "name");
    pack_text(packer, name);
    pack_key(packer, "op");
    pack_text(packer, "Const");
    pack_key(packer, "attrs");
    msgpack_pack_map(packer, 2);
    pack_key(packer, "dtype");
    msgpack_pack_map(packer, 1);
    pack_key(packer, "type");
    pack_text(packer, "float32");
    pack_key(packer, "value");
    msgpack_pack_map(packer, 1);
    pack_key(packer, "tensor");
    msgpack_pack_int(packer, tensor);
}

/* A tensor of a gigabyte that a million constants name would become a million gigabytes. */
static void a_tensor_of_a_record_belongs_to_one_attribute(void **state)
{
    (void)state;
    float value = 1;
    struct named_tensor named = {"c", tensor_borrow(FLOAT32, &SHAPE_SCALAR, &value)};
    struct stream_writer *writer = stream_writer_new_memory("test", 1);
    struct error err = ERROR_INIT;
    struct graph *graph = NULL;
    size_t n;
    msgpack_packer *packer = stream_begin(writer, RECORD_GRAPH, 1);
    pack_key(packer, "nodes");
    msgpack_pack_array(packer, 2);
    pack_const(packer, "a", 0);
    pack_const(packer, "b", 0);
    assert_int_equal(stream_write(writer, &named, 1, &err), 0);
    assert_int_equal(stream_finish(writer, &err), 0);
    const void *bytes = stream_writer_bytes(writer, &n);
    struct stream_reader *reader = stream_reader_new_memory(bytes, n, "memory");
    int code = graph_read(reader, ops_registry(), &graph, &err);
    unit_assert_error(code, err, ERR_DATA, "memory: node 'b': attribute 'value' is malformed");
    stream_reader_free(reader);
    stream_writer_free(writer);
}

static void names_of_tensors_are_fit_for_terminals(void **state)
{
    (void)state;
    static const char *const names[] = {"\x1b]0;evil\a", "a\nb", "\x7f", "\xff", "\xc2\x9b"};
    int64_t value = 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct named_tensor named = {names[i], tensor_borrow(INT64, &SHAPE_SCALAR, &value)};
        struct stream_writer *writer = stream_writer_new_memory("test", 1);
        struct error err = ERROR_INIT;
        assert_int_equal(stream_write_feed(writer, RECORD_FEED, 1, NULL, &named, 1, &err),
                         ERR_DATA);
        stream_writer_free(writer);
    }
}

/* ---- others ---- */

static void rows_have_a_greatest_number_of_fields(void **state)
{
    (void)state;
    size_t n = CSV_FIELDS_MAX + 1;
    char *text = mem_alloc(n + 1);
    memset(text, ',', n);
    struct gzfile *file = gzfile_open_memory(text, n, "f");
    struct csv_reader *reader = csv_reader_new(file, ',', '#');
    struct csv_row row;
    struct error err = ERROR_INIT;
    bool more;
    int code = csv_read(reader, &row, &more, &err);
    unit_assert_error(code, err, ERR_DATA, "f:1: row of more than 1048576 fields");
    csv_reader_free(reader);
    gzfile_close(file);
    mem_free(text);
}

static void a_tensor_of_many_empty_lists_is_printed_in_time(void **state)
{
    (void)state;
    struct shape shape = shape_matrix((int64_t)1 << 40, 0);
    struct tensor t = tensor_borrow(FLOAT32, &shape, NULL);
    struct str out = STR_INIT;
    alarm(SECONDS);
    tensor_print(&out, &t, -1);
    assert_true(out.n < 100000);
    str_release(&out);
}

static void json_is_utf8_whatever_the_bytes_are(void **state)
{
    (void)state;
    struct str out = STR_INIT;
    show_json_text(&out, "\xff\xc3\xa4\xc3", 4);
    assert_string_equal(str_text(&out), "\"\\u00ff\xc3\xa4\\u00c3\"");
    str_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values_are_searched_for_a_bounded_time),
        cmocka_unit_test(conditions_have_a_greatest_depth),
        cmocka_unit_test(many_conditions_side_by_side_are_fine),
        cmocka_unit_test(controls_cost_memory_by_their_number),
        cmocka_unit_test(many_entries_are_read_in_time),
        cmocka_unit_test(long_lines_are_read_in_time),
        cmocka_unit_test(names_have_a_greatest_length_and_the_message_its_cause),
        cmocka_unit_test(free_attributes_have_names_that_the_text_form_has),
        cmocka_unit_test(a_tensor_of_a_record_belongs_to_one_attribute),
        cmocka_unit_test(names_of_tensors_are_fit_for_terminals),
        cmocka_unit_test(rows_have_a_greatest_number_of_fields),
        cmocka_unit_test(a_tensor_of_many_empty_lists_is_printed_in_time),
        cmocka_unit_test(json_is_utf8_whatever_the_bytes_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
