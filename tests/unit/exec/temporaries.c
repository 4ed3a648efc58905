/* SPDX-License-Identifier: Apache-2.0
 *
 * Temporary memory of kernels: it is released when the kernel is done, not with the step.
 */
#include "lib/on_device.h"

#include "base/guard.h"
#include "base/memory.h"
#include "lib/own_kernel.h"
#include "lib/started.h"

#define LIMIT ((size_t)40 << 20)

/* Each unrolls an image of 2 MiB into a matrix of 18 MiB. */
static const char convolutions[] = "x = Placeholder() {dtype=float64, shape=[1,128,128,16]}\n"
                                   "shape = Const() {dtype=int32, value=[3,3,16,16]}\n"
                                   "value = Const() {dtype=float64, value=0.0625}\n"
                                   "f = Fill(shape, value)\n"
                                   "a = Conv2D(x, f) {strides=[1,1,1,1], padding=\"SAME\"}\n"
                                   "b = Conv2D(a, f) {strides=[1,1,1,1], padding=\"SAME\"}\n"
                                   "c = Conv2D(b, f) {strides=[1,1,1,1], padding=\"SAME\"}\n"
                                   "axes = Const() {dtype=int32, value=[0,1,2,3]}\n"
                                   "y = Max(c, axes)\n";

static double run_convolutions(struct fixture *f, const struct tensor *x)
{
    struct tensor y;
    if (fixture_run(f, "y", "x", x, &y))
        fail_msg("%s", f->err.text);
    double largest = tensor_get_float64(&y, 0);
    tensor_release(&y);
    return largest;
}

static void one_matrix_at_a_time(bool dynamic)
{
    static const struct shape shape = {.rank = 4, .dims = {1, 128, 128, 16}};
    struct error err = ERROR_INIT;
    struct tensor x;
    struct fixture f;
    assert_int_equal(tensor_alloc(&x, FLOAT64, &shape, &err), 0);
    for (int64_t i = 0; i < tensor_count(&x); i++)
        ((double *)x.data)[i] = 1;
    fixture_open(&f, convolutions, dynamic);
    for (int i = 0; i < 3; i++) /* inside each multiplies by 9: 3 * 3 of 16 channels, of 1/16 */
        assert_float_equal(run_convolutions(&f, &x), 9 * 9 * 9, 1e-9);
    fixture_close(&f);
    tensor_release(&x);
}

static void static_plans_give_back(void **state)
{
    (void)state;
    one_matrix_at_a_time(false);
}

static void dynamic_plans_give_back(void **state)
{
    (void)state;
    one_matrix_at_a_time(true);
}

/* ---- a device's ---- */

#define DEVICE_MEMORY ((long)44 << 10)

/* Copies by way of temporary memory, six times the input's size: the device has room for two such.
 */
static int copy_by_way(struct kernel_call *call)
{
    const struct tensor *in = call->in[0];
    size_t bytes = tensor_bytes(in);
    struct tensor *out = kernel_alloc_output(call, 0, &in->shape);
    char *way = out ? kernel_device_temporary(call, 6 * bytes) : NULL;
    char *way_back = way ? kernel_device_temporary(call, 6 * bytes) : NULL;
    if (!way_back ||
        call->device->memory->copy(call->device, QUEUE_COMPUTE, way, in->data, bytes, call->err) ||
        call->device->memory->copy(call->device, QUEUE_COMPUTE, way_back + 5 * bytes, way, bytes,
                                   call->err) ||
        call->device->memory->copy(call->device, QUEUE_COMPUTE, out->data, way_back + 5 * bytes,
                                   bytes, call->err))
        return call->err->code;
    return KERNEL_ENQUEUED;
}

static const char chain[] = "x = Placeholder() {dtype=float32, shape=[512]}\n"
                            "a = Neg(x)\n"
                            "b = Square(a)\n"
                            "c = Neg(b)\n"
                            "d = Neg(c)\n"
                            "y = Abs(d)\n";

static void run_chain(struct fixture *f, int code)
{
    static const struct shape shape = {.rank = 1, .dims = {512}};
    float elements[512];
    for (int i = 0; i < 512; i++)
        elements[i] = (float)i;
    struct tensor x = tensor_borrow(FLOAT32, &shape, elements), y;
    assert_int_equal(fixture_run(f, "y", "x", &x, &y), code);
    for (int i = 0; !code && i < 512; i++)
        assert_float_equal(tensor_get_float64(&y, i), (double)i * i, 0);
    if (!code)
        tensor_release(&y);
}

static void work_that_was_enqueued_has_some(void **state)
{
    static const struct kernel_code code = {.run = copy_by_way};
    (void)state;
    for (long seed = 0; seed < 20; seed++) {
        char memory[32];
        struct own_kernel own;
        struct fixture f;
        snprintf(memory, sizeof memory, "%ld", DEVICE_MEMORY);
        setenv("TF_TEST_DEVICE_MEMORY", memory, 1);
        struct device *device = device_open_with("TF_TEST_DEVICE_SEED", seed);
        unsetenv("TF_TEST_DEVICE_MEMORY");
        fixture_open_on(&f, chain, own_kernel_open(&own, device, "Neg", &code, 0), seed % 2);
        for (int i = 0; i < 3; i++)
            run_chain(&f, 0);
        fixture_close(&f);
        own_kernel_close(&own);
        device_free(device);
    }
}

static void a_device_may_have_too_little(void **state)
{
    static const struct kernel_code code = {.run = copy_by_way};
    (void)state;
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        struct device *device = device_open_with("TF_TEST_DEVICE_MEMORY", DEVICE_MEMORY / 2);
        struct own_kernel own;
        struct fixture f;
        fixture_open_on(&f, chain, own_kernel_open(&own, device, "Neg", &code, 0), dynamic);
        run_chain(&f, ERR_OS);
        assert_non_null(strstr(f.err.text, "node 'a': Neg: no memory for 12288 bytes of scratch"));
        fixture_close(&f);
        own_kernel_close(&own);
        device_free(device);
    }
}

static long launches_of_chain(struct device *device)
{
    struct fixture f;
    fixture_open_on(&f, chain, device, false);
    for (int i = 0; i < 4; i++)
        run_chain(&f, 0);
    fixture_close(&f);
    return device_counts(device).launches;
}

/* The memory goes to others. A row declares it, or the first step shows it: steps run item by item.
 */
static void what_is_captured_has_none(void **state)
{
    static const struct kernel_code code = {.run = copy_by_way};
    (void)state;
    for (unsigned flags = 0; flags <= KERNEL_UNCAPTURED; flags += KERNEL_UNCAPTURED) {
        struct device *device = device_open_with("TF_TEST_DEVICE_SEED", 4);
        struct own_kernel own;
        struct device *other = own_kernel_open(&own, device, "Neg", &code, flags);
        assert_int_equal(launches_of_chain(other), 0);
        own_kernel_close(&own);
        assert_int_equal(launches_of_chain(device), 3);
        device_free(device);
    }
}

/* The CPU's temporaries are host memory. */
static void the_hosts_is_the_devices(void **state)
{
    static const struct kernel_code code = {.run = copy_by_way};
    struct error err = ERROR_INIT;
    struct device *cpu = device_open("CPU", 0, &(struct device_options){.threads = 1}, &err);
    struct device with_table = *cpu;
    struct own_kernel own;
    struct fixture f;
    (void)state;
    with_table.kernels = ops_kernels();
    fixture_open_on(&f, chain, own_kernel_open(&own, &with_table, "Neg", &code, 0), false);
    run_chain(&f, 0);
    fixture_close(&f);
    own_kernel_close(&own);
    device_free(cpu);
}

/* ---- garbage in reused memory ---- */

static int leave(struct kernel_call *call)
{
    return kernel_alloc_output(call, 0, &call->in[0]->shape) ? 0 : call->err->code;
}

static const struct kernel_code leaves_code = {.run = leave};

/* A comparison finds a kernel that does not write all of its output: builds with AddressSanitizer
 * leave no earlier values there, which might be right by chance. */
static void what_a_kernel_does_not_write_is_nan(void **state)
{
    struct planned p;
    (void)state;
    if (!SPOILS_MEMORY || !fixture_device()->is_host)
        skip();
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        planned_open(&p, "one = Const() {dtype=float32, value=1}\n"
                         "v = Variable() {dtype=float32, shape=[]}\n"
                         "init = Assign(v, one)\n"
                         "a = Square(v)\n"
                         "left = StopGradient(a)\n"
                         "y = Add(left, left)\n");
        p.options.cut = dynamic ? CUT_REGIONS : CUT_WHOLE;
        planned_get(&p, "^init");
        planned_add_kernel(&p, "StopGradient", &leaves_code, 0);
        double y = planned_get(&p, "y");
        assert_true(y != y);
        planned_close(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(static_plans_give_back),
                                       cmocka_unit_test(dynamic_plans_give_back),
                                       cmocka_unit_test(work_that_was_enqueued_has_some),
                                       cmocka_unit_test(a_device_may_have_too_little),
                                       cmocka_unit_test(what_is_captured_has_none),
                                       cmocka_unit_test(the_hosts_is_the_devices),
                                       cmocka_unit_test(what_a_kernel_does_not_write_is_nan)};
    test_device_path();
    mem_set_limit(LIMIT, "the test");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
