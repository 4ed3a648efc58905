/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of records whose slices are wrong or missing: one line each, and nothing is restored.
 */
#include <fcntl.h>

#include "checkpoint/formats/source.h"
#include "exec/device/device_set.h"
#include "exec/state/saver.h"
#include "graph/text.h"
#include "lib/stores.h"
#include "lib/test_device.h"
#include "ops/ops.h"

/* A variable of 4 rows and 3 columns, in two slices of rows. */
#define HALVES                                                                                     \
    "t/part_0 = Variable() {shape=[2,3], dtype=int32, _slice_of=\"t\", "                           \
    "_slice_shape:shape=[4,3], _slice_offset=0}\n"                                                 \
    "t/part_1 = Variable() {shape=[2,3], dtype=int32, _slice_of=\"t\", "                           \
    "_slice_shape:shape=[4,3], _slice_offset=2}\n"
#define WHOLE "t = Variable() {shape=[4,3], dtype=int32}\n"
#define OPEN "t = Variable() {shape=[?,3], dtype=int32}\n"
#define UNKNOWN "t = Variable() {shape=?, dtype=int32}\n"

struct part {
    const char *name;
    enum dtype type;
    struct variable_slice slice;
    int rows;
};

static const struct variable_slice first_half = {.of = "t", .rows = 4},
                                   second_half = {.of = "t", .rows = 4, .first = 2}, none;

static struct graph *parse(const char *text)
{
    struct error err = ERROR_INIT;
    struct graph *graph;
    if (graph_parse_text(text, strlen(text), "test", ops_registry(), &graph, &err))
        fail_msg("%s", err.text);
    return graph;
}

static void put(struct stream_writer *writer, const struct part *part)
{
    struct error err = ERROR_INIT;
    const struct shape shape = shape_matrix(part->rows, 3);
    struct variable_record record = {
        .container = "default", .name = part->name, .slice = part->slice, .step = 5};
    assert_int_equal(tensor_alloc(&record.value, part->type, &shape, &err), 0);
    memset(record.value.data, 1, tensor_bytes(&record.value));
    assert_int_equal(stream_write_variable(writer, &record, &err), 0);
    tensor_release(&record.value);
}

/* Restores as a tool does, from a file that lacks its last `cut` bytes. */
static int restore(const struct part *parts, size_t n, int cut, const char *text, struct error *err)
{
    const char *folder = stores_folder();
    struct variable_store *store = variable_store_new();
    struct graph *graph = parse(text);
    struct device_set devices = {VEC_INIT};
    char path[STORES_PATH_BYTES + 16];
    int64_t step = 0;
    snprintf(path, sizeof path, "%s/x.ckpt", folder);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    struct stream_writer *writer = stream_writer_new(fd, path, "test", -1);
    for (size_t i = 0; i < n; i++)
        put(writer, &parts[i]);
    assert_int_equal(stream_finish(writer, err), 0);
    stream_writer_free(writer);
    assert_int_equal(ftruncate(fd, lseek(fd, 0, SEEK_END) - cut), 0);
    lseek(fd, 0, SEEK_SET);
    struct stream_reader *reader = stream_reader_new(fd, "x.ckpt");
    struct device *device = test_device_open(1, err);
    vec_push(&devices.devices, device);
    int code = variables_restore(store, graph, &devices, reader, &step, err);
    assert_int_equal(variable_store_next(store, NULL) != NULL, !code);
    if (!code)
        assert_int_equal(step, 5);
    stream_reader_free(reader);
    close(fd);
    variable_store_free(store);
    device_set_release(&devices);
    graph_free(graph);
    stores_remove(folder);
    return code;
}

#define REFUSED(parts, into, line)                                                                 \
    do {                                                                                           \
        struct error err = ERROR_INIT;                                                             \
        unit_assert_error(restore(parts, sizeof(parts) / sizeof *(parts), 0, into, &err), err,     \
                          ERR_DATA, line);                                                         \
    } while (0)

#define RESTORED(parts, into)                                                                      \
    do {                                                                                           \
        struct error err = ERROR_INIT;                                                             \
        if (restore(parts, sizeof(parts) / sizeof *(parts), 0, into, &err))                        \
            fail_msg("%s", err.text);                                                              \
    } while (0)

static void slices_that_disagree(void **unused)
{
    const struct part types[] = {{"t/part_0", INT32, first_half, 2},
                                 {"t/part_1", FLOAT32, second_half, 2}};
    const struct part shapes[] = {{"t/part_0", INT32, first_half, 2},
                                  {"t/part_1", INT32, {.of = "t", .rows = 5, .first = 2}, 2}};
    const struct part both[] = {{"t/part_0", INT32, {.of = "t", .rows = 5}, 2},
                                {"t/part_1", INT32, {.of = "t", .rows = 5, .first = 2}, 3}};
    (void)unused;
    for (int i = 0; i < 2; i++) {
        const char *text = i ? HALVES : WHOLE;
        REFUSED(types, text,
                "x.ckpt: variable 't' is int32[4,3] by 't/part_0', but float32[4,3] by 't/part_1'");
        REFUSED(shapes, text,
                "x.ckpt: variable 't' is int32[4,3] by 't/part_0', but int32[5,3] by 't/part_1'");
        REFUSED(both, text,
                "x.ckpt: variable 't' is int32[5,3] there, but int32[4,3] in the graph");
    }
}

static void slices_that_no_whole_has(void **unused)
{
    const struct variable_slice impossible[] = {
        {.of = "t", .rows = 4, .first = 3},
        {.of = "t", .rows = 1},
        {.of = "t", .rows = 4, .first = -1},
        {.of = "t", .rows = INT64_MAX, .first = INT64_MAX - 1},
        {.of = "t", .rows = INT64_MAX, .first = 0},
        {.of = "t", .rows = 4, .axes = {{0}, {2, 0}}},
        {.of = "t", .rows = 4, .axes = {{0}, {5, 3}}},
        {.of = "t", .rows = 4, .axes = {{0}, {INT64_MAX / 4, 3}}},
        {.of = "t", .rows = 4, .axes = {{0}, {0}, {7, 0}}},
        {.of = "t\n", .rows = 4},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof impossible / sizeof *impossible; i++) {
        const struct part parts[] = {{"t/part_1", INT32, second_half, 2},
                                     {"t/part_0", INT32, impossible[i], 2}};
        REFUSED(parts, WHOLE,
                "x.ckpt: 't/part_0' cannot be the part of a variable that it says it is");
    }
}

/* A whole variable too large for any memory must not be allocated to look for it. */
static void a_whole_of_which_little_is_there(void **unused)
{
    const struct part parts[] = {{"t/part_0", INT32, {.of = "t", .rows = (int64_t)1 << 40}, 2},
                                 {"t/part_0", INT32, {.of = "t", .rows = (int64_t)1 << 40}, 2}};
    struct error err = ERROR_INIT;
    (void)unused;
    unit_assert_error(restore(parts, 1, 0, OPEN, &err), err, ERR_DATA,
                      "x.ckpt: variable 't': 2 of 1099511627776 rows are in it");
    error_clear(&err);
    unit_assert_error(restore(parts, 2, 0, OPEN, &err), err, ERR_DATA,
                      "x.ckpt: variable 't': not all of 1099511627776 rows are in it");
}

static void shapes_that_the_graph_leaves_open(void **unused)
{
    const struct part parts[] = {{"t/part_1", INT32, second_half, 2},
                                 {"t/part_0", INT32, first_half, 2}};
    (void)unused;
    RESTORED(parts, OPEN);
    RESTORED(parts, UNKNOWN);
    RESTORED(parts, WHOLE);
    RESTORED(parts, HALVES);
}

/* Older files do not mark slices; the slices are known by their names. */
static void slices_that_do_not_say_so(void **unused)
{
    const struct part same[] = {{"t/part_1", INT32, none, 2}, {"t/part_0", INT32, none, 2}};
    const struct part other[] = {{"t/part_1", INT32, none, 1}, {"t/part_0", INT32, none, 3}};
    (void)unused;
    RESTORED(same, HALVES);
    REFUSED(other, HALVES,
            "x.ckpt: variable 't/part_0' is int32[3,3] there, but int32[2,3] in the graph");
    REFUSED(same, WHOLE, "x.ckpt: variable 't' is not in it");
}

static void a_file_that_was_cut(void **unused)
{
    const struct part parts[] = {{"t/part_0", INT32, first_half, 2},
                                 {"t/part_1", INT32, second_half, 2}};
    (void)unused;
    for (int cut = 1; cut < 160; cut++) {
        struct error err = ERROR_INIT;
        assert_int_equal(restore(parts, 2, cut, WHOLE, &err), ERR_DATA);
        assert_non_null(strstr(err.text, "x.ckpt: "));
        assert_non_null(strstr(err.text, "; behind variable 't/part_"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_that_disagree),
        cmocka_unit_test(slices_that_no_whole_has),
        cmocka_unit_test(a_whole_of_which_little_is_there),
        cmocka_unit_test(shapes_that_the_graph_leaves_open),
        cmocka_unit_test(slices_that_do_not_say_so),
        cmocka_unit_test(a_file_that_was_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
