/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA device's own code over a fake driver (lib/fake_cuda.h): memory, pinned memory, times,
 * and the failure of any call.
 */
#include "lib/on_device.h"

#include "base/container_of.h"
#include "base/memory.h"
#include "base/time.h"
#include "exec/device/queue.h"
#include "lib/unit.h"

#define PAGE 4096

static struct device *open_cuda(const struct device_options *options, struct error *err)
{
    return device_open("CUDA", 0, options, err);
}

static struct device *cuda_new(void)
{
    struct error err = ERROR_INIT;
    struct device *device = open_cuda(&(struct device_options){.threads = 1}, &err);
    if (!device)
        fail_msg("%s", err.text);
    return device;
}

/* ---- memory ---- */

static void memory_is_limited(void **state)
{
    struct error err = ERROR_INIT;
    struct device *device =
        open_cuda(&(struct device_options){.threads = 1, .memory = 1 << 20}, &err);
    (void)state;
    struct buffer *half = device_alloc(device, 1 << 19), *rest = device_alloc(device, 1 << 19);
    assert_non_null(half);
    assert_non_null(rest);
    assert_null(device_alloc(device, 1));
    assert_string_equal(mem_limit_text(), ": 1024 of the 1024 KiB of CUDA:0 are in use");
    assert_string_equal(mem_limit_text(), "");
    half->free(half);
    assert_null(device_alloc(device, SIZE_MAX));
    half = device_alloc(device, 1 << 19);
    assert_non_null(half);
    half->free(half);
    rest->free(rest);
    device_free(device);
}

/* Copies of partly pinned memory are made in pieces, as the driver takes no others. */
static void memory_is_pinned_by_whole_pages(void **state)
{
    static _Alignas(PAGE) char memory[8 * PAGE], back[8 * PAGE];
    static const struct {
        size_t at, bytes;
    } ranges[] = {{100, PAGE + 200}, {PAGE + 300, 2 * PAGE}, {4 * PAGE, PAGE}, {5 * PAGE, PAGE}};
    struct device *device = cuda_new();
    struct error err = ERROR_INIT;
    (void)state;
    assert_int_equal(device->memory->pin(device, memory + 10, 100, &err), ERR_OS); /* no page */
    for (int i = 1; i < 4; i++)
        assert_int_equal(device->memory->pin(device, memory + ranges[i].at, ranges[i].bytes, &err),
                         0);
    for (size_t i = 0; i < sizeof memory; i++)
        memory[i] = (char)(i * 7 + i / PAGE);
    struct buffer *b = device_alloc(device, sizeof memory);
    for (size_t at = 0; at < sizeof memory; at += 5 * PAGE / 2) {
        memset(back, 0, sizeof back);
        assert_int_equal(device_write(device, b->data, memory, sizeof memory, &err), 0);
        assert_int_equal(
            device_read(device, back + at, (char *)b->data + at, sizeof back - at, &err), 0);
        assert_memory_equal(back + at, memory + at, sizeof memory - at);
    }
    for (int i = 1; i < 4; i++)
        device->memory->unpin(device, memory + ranges[i].at);
    b->free(b);
    device_free(device);
}

static void devices_share_what_is_pinned(void **state)
{
    static _Alignas(PAGE) char memory[2 * PAGE];
    struct error err = ERROR_INIT;
    struct device *one = cuda_new();
    struct device *other = device_open("CUDA", 1, &(struct device_options){.threads = 1}, &err);
    struct buffer *b = device_alloc(other, sizeof memory);
    (void)state;
    assert_int_equal(one->memory->pin(one, memory, sizeof memory, &err), 0);
    assert_int_equal(other->memory->pin(other, memory, sizeof memory, &err), 0);
    one->memory->unpin(one, memory);
    assert_int_equal(device_write(other, b->data, memory, sizeof memory, &err), 0);
    other->memory->unpin(other, memory);
    b->free(b);
    device_free(other);
    device_free(one);
}

/* ---- events ---- */

static void times_are_the_hosts(void **state)
{
    struct device *device = cuda_new();
    struct buffer *b = device_alloc(device, 64);
    struct error err = ERROR_INIT;
    (void)state;
    int64_t before = time_now_ns();
    struct device_event *begin = device->queue->record(device, QUEUE_COMPUTE, true);
    assert_int_equal(
        device->memory->copy(device, QUEUE_COMPUTE, b->data, (char *)b->data + 32, 32, &err), 0);
    struct device_event *end = device->queue->record(device, QUEUE_COMPUTE, true);
    assert_int_equal(device->queue->block(device, end, &err), 0);
    assert_in_range(device->queue->time(device, begin), before - 1000000, time_now_ns() + 1000000);
    /* a microsecond each by the driver's clock */
    assert_in_range(device->queue->time(device, end) - device->queue->time(device, begin), 999,
                    1001);
    device->queue->event_free(device, begin);
    device->queue->event_free(device, end);
    b->free(b);
    device_free(device);
}

struct told {
    struct event_waiter waiter;
    atomic_int times, code;
};

static void note(struct event_waiter *waiter, const struct error *failure)
{
    struct told *told = CONTAINER_OF(waiter, struct told, waiter);
    atomic_store(&told->code, failure ? failure->code : 0);
    atomic_fetch_add(&told->times, 1);
}

/* Closing the device waits until all waiters are told. */
static void everybody_is_told_once(void **state)
{
    static struct told told[60];
    struct error err = ERROR_INIT;
    (void)state;
    for (long at = 0; at < 2; at++) { /* also on a device that fails */
        struct device *device = device_open_with(at ? "TF_TEST_DEVICE_FAIL_CALL" : NULL, 100);
        struct buffer *b = device_alloc(device, 64);
        memset(told, 0, sizeof told);
        for (int i = 0; i < 60; i++) {
            told[i].waiter.done = note;
            device->memory->copy(device, QUEUE_COMPUTE, b->data, (char *)b->data + 32, 32, &err);
            struct device_event *event =
                device->queue->record(device, (enum queue_kind)(i % 3), false);
            device->queue->notify(device, event, &told[i].waiter);
        }
        b->free(b);
        device_free(device);
        for (int i = 0; i < 60; i++)
            assert_int_equal(atomic_load(&told[i].times), 1);
        assert_int_equal(atomic_load(&told[59].code), at ? ERR_OS : 0);
    }
}

/* ---- failures ---- */

static const char training[] = "x = Placeholder() {dtype=float32, shape=[4]}\n"
                               "v = Variable() {dtype=float32, shape=[4]}\n"
                               "zero = Const() {dtype=float32, value=[0, 0, 0, 0]}\n"
                               "first = Assign(v, zero)\n"
                               "init = NoOp(^first)\n"
                               "half = Mul(x, x)\n"
                               "add = AssignAdd(v, half)\n"
                               "y = Identity(add)\n";

/* Whichever call fails, the run ends with one line, and everything is given back. */
static void any_call_may_fail(void **state)
{
    static const struct shape shape = {.rank = 1, .dims = {4}};
    float elements[4] = {1, 2, 3, 4};
    struct tensor x = tensor_borrow(FLOAT32, &shape, elements);
    int ended_well = 0;
    (void)state;
    for (long at = 1; at < 400 && ended_well < 5; at++) {
        struct device_options options = {.threads = 1};
        struct error err = ERROR_INIT;
        char text[32];
        snprintf(text, sizeof text, "%ld", at);
        setenv("TF_TEST_DEVICE_FAIL_CALL", text, 1);
        struct device *device = open_cuda(&options, &err);
        unsetenv("TF_TEST_DEVICE_FAIL_CALL");
        if (!device) {
            assert_non_null(strstr(err.text, "as it was asked to"));
            continue;
        }
        struct fixture f;
        fixture_open_on(&f, training, device, at % 2);
        int code = fixture_run(&f, "^init", NULL, NULL, NULL);
        for (int i = 0; i < 5 && !code; i++) {
            struct tensor y;
            code = fixture_run(&f, "y", "x", &x, &y);
            if (!code)
                tensor_release(&y);
        }
        ended_well += !code;
        bool by_kernel = code == ERR_INTERNAL; /* the tests' own: they see it first */
        if (code &&
            (!strstr(f.err.text, "a call has failed, as it was asked to") ||
             (!by_kernel && (code != ERR_OS || !strstr(f.err.text, "CUDA:0 has failed: ")))))
            fail_msg("call %ld: %d, '%s'", at, code, f.err.text);
        fixture_close(&f);
        device_free(device);
    }
    assert_int_equal(ended_well, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_limited),
        cmocka_unit_test(memory_is_pinned_by_whole_pages),
        cmocka_unit_test(devices_share_what_is_pinned),
        cmocka_unit_test(times_are_the_hosts),
        cmocka_unit_test(everybody_is_told_once),
        cmocka_unit_test(any_call_may_fail),
    };
    setenv("TF_TEST_DEVICE", "CUDA:0", 1);
    test_device_path();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
