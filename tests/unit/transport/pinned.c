/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory into which links receive is pinned for a device (lib/device_test.h), which fails for good
 * if it is not unpinned in time.
 */
#include "exec/device/pinned.h"

#include "exec/device/queue.h"
#include "lib/on_device.h"
#include "transport/link/buffer_pool.h"

#define N ((int64_t)1 << 20)

static const struct shape large = {1, {N}}, small = {1, {4}};

static struct tensor received(struct buffer_pool *buffer_pool, const struct shape *shape)
{
    const struct tensor like = {.type = FLOAT32, .shape = *shape};
    struct error err = ERROR_INIT;
    struct tensor t;
    assert_int_equal(
        buffer_pool_alloc(buffer_pool, &t, &like, (size_t)shape_bytes(shape, FLOAT32), &err), 0);
    return t;
}

static void expect_counts(struct device *device, long pins, long unpins)
{
    assert_int_equal(device_counts(device).pins, pins);
    assert_int_equal(device_counts(device).unpins, unpins);
}

/* The device has not failed. */
static void finish(struct device *device)
{
    struct error err = ERROR_INIT;
    if (device_finish(device, &err))
        fail_msg("%s", err.text);
    device_free(device);
}

static void received_memory_is_pinned_as_long_as_it_is_kept(void **state)
{
    struct device *device = device_open_with(NULL, 0);
    struct buffer_pool *buffer_pool = buffer_pool_new((size_t)1 << 30);
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct tensor a = received(buffer_pool, &large), b = received(buffer_pool, &small);
        expect_counts(device, 1, 0); /* small values come from the allocator */
        tensor_release(&a);
        tensor_release(&b);
    }
    buffer_pool_trim(buffer_pool, 0);
    expect_counts(device, 1, 1);
    struct tensor again = received(buffer_pool, &large);
    buffer_pool_free(buffer_pool);
    expect_counts(device, 2, 1);
    tensor_release(&again);
    expect_counts(device, 2, 2);
    finish(device);
}

static void devices_come_and_go_meanwhile(void **state)
{
    struct buffer_pool *buffer_pool = buffer_pool_new((size_t)1 << 30);
    struct tensor before = received(buffer_pool, &large);
    struct device *device = device_open_with(NULL, 0), *other = device_open_with(NULL, 0);
    (void)state;
    expect_counts(device, 1, 0);
    finish(other); /* unpins what is there */
    struct tensor then = received(buffer_pool, &large);
    expect_counts(device, 2, 0);
    tensor_release(&before);
    buffer_pool_trim(buffer_pool, -1);
    expect_counts(device, 2, 1);
    finish(device);
    tensor_release(&then);
    buffer_pool_free(buffer_pool);
}

/* ---- errors that the device detects ---- */

static void memory_that_went_is_found(void **state)
{
    struct device *device = device_open_with(NULL, 0);
    static char memory[4096];
    struct error err = ERROR_INIT;
    (void)state;
    pinned_add(memory, sizeof memory);
    pinned_add(memory + 64, 64); /* as if this were newly allocated */
    assert_int_equal(device_finish(device, &err), ERR_INTERNAL);
    assert_string_equal(err.text, "the TEST device: 64 bytes are pinned that are");
    pinned_remove(memory + 64); /* the device does not know this memory */
    expect_counts(device, 1, 0);
    pinned_remove(memory);
    expect_counts(device, 1, 1);
    device_free(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(received_memory_is_pinned_as_long_as_it_is_kept),
        cmocka_unit_test(devices_come_and_go_meanwhile),
        cmocka_unit_test(memory_that_went_is_found),
    };
    test_device_path();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
