/* SPDX-License-Identifier: Apache-2.0
 *
 * A device with memory of its own (lib/device_test.h): which values are copied, and which errors
 * occur.
 */
#include "lib/on_device.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "lib/plan_items.h"
#include "lib/unit.h"

static bool dynamic;

/* Runs a step that feeds x, [2,3]; returns its number of copies. */
static struct device_test_counts run_counted(struct fixture *f, const char *fetch, double first)
{
    static const struct shape shape = {.rank = 2, .dims = {2, 3}};
    float elements[] = {1, 2, 3, 4, 5, 6};
    struct tensor x = tensor_borrow(FLOAT32, &shape, elements), result;
    struct device_test_counts before = device_counts(fixture_device());
    assert_int_equal(fixture_run(f, fetch, "x", &x, &result), 0);
    struct device_test_counts after = device_counts(fixture_device());
    assert_float_equal(tensor_get_float64(&result, 0), first, 0);
    tensor_release(&result);
    return (struct device_test_counts){.copies_in = after.copies_in - before.copies_in,
                                       .copies_out = after.copies_out - before.copies_out,
                                       .copies = after.copies - before.copies,
                                       .enqueued = after.enqueued - before.enqueued};
}

static const char arithmetic[] = "x = Placeholder() {dtype=float32, shape=[2,3]}\n"
                                 "two = Const() {dtype=float32, value=2}\n"
                                 "a = Mul(x, two)\n"
                                 "b = Add(x, a)\n"
                                 "axes = Const() {dtype=int32, value=[0,1]}\n"
                                 "sum = Sum(b, axes) {keep_dims=false}\n"
                                 "shape = Shape(x) {out_type=int32}\n"
                                 "flat = Const() {dtype=int32, value=[6]}\n"
                                 "y = Reshape(b, flat)\n"
                                 "same = Reshape(y, shape)\n";

static void a_feed_is_copied_once_and_a_constant_once_for_all_steps(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f, arithmetic, dynamic);
    struct device_test_counts first = run_counted(&f, "sum", 63);
    struct device_test_counts second = run_counted(&f, "sum", 63);
    assert_int_equal(first.copies_in, 3); /* the step block, x, the constant */
    assert_int_equal(second.copies_in, 2);
    assert_int_equal(second.copies_out, 2);
    assert_int_equal(second.copies, 0);
    assert_true(second.enqueued >= 2);
    fixture_close(&f);
}

static void shapes_are_the_hosts(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f, arithmetic, dynamic);
    struct device_test_counts shape = run_counted(&f, "shape", 2);
    assert_int_equal(shape.copies_in + shape.copies_out, 0);
    run_counted(&f, "same", 3);
    struct device_test_counts same = run_counted(&f, "same", 3);
    assert_int_equal(same.copies_in, 2);
    assert_int_equal(same.copies_out, 2);
    fixture_close(&f);
}

/* ---- variables ---- */

static const char shaped[] = "v = Variable() {dtype=int32, shape=[2]}\n"
                             "old = Const() {dtype=int32, value=[2,3]}\n"
                             "new = Const() {dtype=int32, value=[3,2]}\n"
                             "init = Assign(v, old)\n"
                             "write = Assign(v, new)\n"
                             "x = Const() {dtype=float32, value=[1,2,3,4,5,6]}\n"
                             "after = Reshape(x, v, ^write)\n"
                             "reads = Reshape(x, v)\n"
                             "before = Identity(reads, ^write)\n";

static void expect_rows(struct fixture *f, const char *fetch, int64_t rows)
{
    struct tensor result;
    fixture_do(f, "^init");
    if (fixture_run(f, fetch, NULL, NULL, &result))
        fail_msg("%s", f->err.text);
    assert_int_equal(result.shape.rank, 2);
    assert_int_equal(result.shape.dims[0], rows);
    assert_float_equal(tensor_get_float64(&result, 5), 6, 0);
    tensor_release(&result);
}

/* The copy to the host is an ordinary read: before the write, or after it where an edge says so. */
static void the_host_sees_a_variable_as_its_consumer_would(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f, shaped, dynamic);
    for (int i = 0; i < 3; i++) {
        expect_rows(&f, "before", 2);
        expect_rows(&f, "after", 3);
        expect_rows(&f, "reads", 2);
    }
    fixture_close(&f);
}

static struct session *open_on(struct device *device, struct fixture *f,
                               struct variable_store *store)
{
    struct session_options options = {
        .plan = {.kernels = ops_kernels(), .device = device, .variables = store}};
    f->session = session_new(f->graph, &options);
    return f->session;
}

static void a_variable_is_in_one_memory(void **state)
{
    struct fixture f;
    struct device *cpu = device_open("CPU", 0, &(struct device_options){.threads = 1}, &f.err);
    struct variable_store *store = variable_store_new();
    (void)state;
    fixture_open(&f, shaped, false);
    session_free(f.session);
    struct session *session = open_on(fixture_device(), &f, store);
    fixture_do(&f, "^init");
    session_free(session);
    session = open_on(cpu, &f, store);
    unit_assert_error(fixture_run(&f, "v", NULL, NULL, NULL), f.err, ERR_DATA,
                      "node 'v': variable 'v' is in the memory of TEST:0, not of CPU:0");
    fixture_close(&f);
    variable_store_free(store);
    device_free(cpu);
}

/* ---- errors ---- */

static const char gather[] = "x = Placeholder() {dtype=float32, shape=[2,3]}\n"
                             "row = Const() {dtype=int32, value=7}\n"
                             "y = Gather(x, row)\n"
                             "z = Neg(y)\n";

/* The kernel was enqueued and fails when the step waits. */
static void a_late_error_names_its_node(void **state)
{
    static const struct shape shape = {.rank = 2, .dims = {2, 3}};
    float elements[6] = {0};
    struct tensor x = tensor_borrow(FLOAT32, &shape, elements), result;
    struct fixture f;
    (void)state;
    fixture_open(&f, gather, dynamic);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fixture_run(&f, "z", "x", &x, &result), ERR_DATA);
        assert_non_null(strstr(f.err.text, "node 'y': Gather: "));
    }
    fixture_close(&f);
}

/* A device like the TEST device except for the kernels of one op. */
static struct device with_row(const char *op, const char *host_outputs, struct kernel_table *table)
{
    struct device device = *fixture_device();
    struct kernel_row *rows = mem_array(device.kernels->n, sizeof *rows);
    for (size_t i = 0; i < device.kernels->n; i++) {
        rows[i] = device.kernels->rows[i];
        if (!strcmp(rows[i].op, op))
            rows[i].host_outputs = host_outputs;
    }
    *table = (struct kernel_table){rows, device.kernels->n};
    device.kernels = table;
    return device;
}

static void an_alias_in_other_memory_is_refused(void **state)
{
    struct fixture f;
    struct kernel_table table;
    struct device odd = with_row("Identity", "*", &table);
    (void)state;
    fixture_open(&f, shaped, false);
    session_free(f.session);
    open_on(&odd, &f, NULL);
    assert_int_equal(fixture_run(&f, "before", NULL, NULL, NULL), ERR_INTERNAL);
    assert_non_null(strstr(f.err.text, "in different places"));
    fixture_close(&f);
    mem_free((void *)(uintptr_t)table.rows);
}

/* ---- the device itself ---- */

static void the_host_cannot_touch_its_memory(void **state)
{
    struct device *device = fixture_device();
    struct buffer *buffer = device->memory->alloc(device, 64);
    (void)state;
    assert_non_null(buffer);
    pid_t child = fork();
    if (!child) {
        signal(SIGSEGV, SIG_DFL); /* cmocka continues with the next test */
        close(STDERR_FILENO);
        _exit(*(volatile char *)buffer->data == 7 ? 0 : 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
    buffer->free(buffer);
}

static void addresses_are_checked(void **state)
{
    struct error err = ERROR_INIT;
    struct device *device = fixture_device();
    struct buffer *buffer = device->memory->alloc(device, 64);
    char host[64] = "";
    (void)state;
    assert_int_equal(device->memory->copy(device, QUEUE_IN, host, buffer->data, 64, &err),
                     ERR_INTERNAL);
    assert_int_equal(device->memory->copy(device, QUEUE_OUT, buffer->data, host, 64, &err),
                     ERR_INTERNAL);
    assert_int_equal(device->memory->copy(device, QUEUE_COMPUTE, host, host, 64, &err),
                     ERR_INTERNAL);
    buffer->free(buffer);
}

static void on_the_host_nothing_is_copied(void **state)
{
    struct fixture f;
    struct error err = ERROR_INIT;
    struct plan *const *plans;
    struct device *cpu = device_open("CPU", 0, &(struct device_options){.threads = 1}, &err);
    int n;
    (void)state;
    fixture_open(&f, arithmetic, dynamic);
    session_free(f.session);
    struct session_options options = {.plan = {.kernels = ops_kernels(),
                                               .device = cpu,
                                               .cut = dynamic ? CUT_REGIONS : CUT_WHOLE}};
    f.session = session_new(f.graph, &options);
    static const struct shape shape = {.rank = 2, .dims = {2, 3}};
    struct tensor value = tensor_borrow(FLOAT32, &shape, NULL);
    struct edge x = {graph_find(f.graph, "x")->id, 0}, same = {graph_find(f.graph, "same")->id, 0};
    struct plan_request call = {
        .feeds = &x, .feed_values = &value, .n_feeds = 1, .fetches = &same, .n_fetches = 1};
    assert_int_equal(session_plans(f.session, &call, &plans, &n, &err), 0);
    assert_int_equal(plan_count_kernels(plans[0], "copy"), 0);
    fixture_close(&f);
    device_free(cpu);
}

static void modules_are_found_by_a_path(void **state)
{
    static const char *const malformed[] = {"", "../TEST", "T EST"};
    struct error err = ERROR_INIT;
    struct device_options options = {.threads = 1};
    char *kept = mem_strdup(getenv("TF_DEVICE_PATH")), path[8192];
    (void)state;
    assert_null(device_open("TES", 0, &options, &err));
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "no device of type 'TES'"));
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        assert_null(device_open(malformed[i], 0, &options, &err));
        assert_int_equal(err.code, ERR_CONFIG);
        assert_non_null(strstr(err.text, "no device has the type"));
    }
    snprintf(path, sizeof path, ":/nowhere::%s", kept);
    setenv("TF_DEVICE_PATH", path, 1);
    struct device *device = device_open("TEST", 2, &options, &err);
    assert_non_null(device);
    assert_int_equal(device->index, 2);
    device_free(device);
    unsetenv("TF_DEVICE_PATH");
    assert_null(device_open("TEST", 0, &options, &err));
    setenv("TF_DEVICE_PATH", kept, 1);
    mem_free(kept);
}

static int use_dynamic(void **state)
{
    (void)state;
    dynamic = true;
    return 0;
}

#define BOTH_EXECUTORS                                                                             \
    cmocka_unit_test(a_feed_is_copied_once_and_a_constant_once_for_all_steps),                     \
        cmocka_unit_test(shapes_are_the_hosts),                                                    \
        cmocka_unit_test(the_host_sees_a_variable_as_its_consumer_would),                          \
        cmocka_unit_test(a_late_error_names_its_node),                                             \
        cmocka_unit_test(on_the_host_nothing_is_copied)

int main(void)
{
    const struct CMUnitTest automatic[] = {BOTH_EXECUTORS,
                                           cmocka_unit_test(a_variable_is_in_one_memory),
                                           cmocka_unit_test(an_alias_in_other_memory_is_refused),
                                           cmocka_unit_test(the_host_cannot_touch_its_memory),
                                           cmocka_unit_test(addresses_are_checked),
                                           cmocka_unit_test(modules_are_found_by_a_path)};
    const struct CMUnitTest forced[] = {BOTH_EXECUTORS};
    setenv("TF_TEST_DEVICE", "TEST:0", 1);
    int failed = cmocka_run_group_tests_name("static where possible", automatic, NULL, NULL);
    return failed + cmocka_run_group_tests_name("dynamic", forced, use_dynamic, NULL);
}
