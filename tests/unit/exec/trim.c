/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of a device that a session's plans keep for their next step.
 */
#include "lib/session.h"

/* Makes a matrix of 256 KiB and reads it twice, in one direction or the other. */
static const char graph_text[] = "x = Placeholder() {dtype=float32, shape=[]}\n"
                                 "shape = Const() {dtype=int32, value=[256, 256]}\n"
                                 "grid = Fill(shape, x)\n"
                                 "square = MatMul(grid, grid)\n"
                                 "first = Sum(square, all)\n"
                                 "turned = MatMul(grid, square)\n"
                                 "second = Sum(turned, all)\n"
                                 "all = Const() {dtype=int32, value=[0, 1]}\n";

/* ---- a device that counts bytes ---- */

static struct buffer *(*device_gives)(struct device *device, size_t bytes);
static size_t given; /* bytes in use */

struct metered_function {
    struct buffer buffer; /* must be first */
    struct buffer *memory;
};

static void give_back(struct buffer *buffer)
{
    struct metered_function *counted = (struct metered_function *)buffer;
    given -= buffer->bytes;
    counted->memory->free(counted->memory);
    free(counted);
}

static struct buffer *alloc(struct device *device, size_t bytes)
{
    struct buffer *memory = device_gives(device, bytes);
    struct metered_function *counted = calloc(1, sizeof *counted);
    assert_non_null(memory);
    assert_non_null(counted);
    counted->memory = memory;
    counted->buffer =
        (struct buffer){.bytes = bytes, .data = memory->data, .free = give_back, .owner = NULL};
    atomic_init(&counted->buffer.holders, 1);
    given += bytes;
    return &counted->buffer;
}

static int count(void **state)
{
    (void)state;
    struct device *device = fixture_device();
    device_gives = device->memory->alloc;
    static struct device_memory counted;
    counted = *device->memory;
    counted.alloc = alloc;
    device->memory = &counted;
    return 0;
}

/* ---- memory kept between steps ---- */

static size_t kept_after(struct fixture *f, const char *what)
{
    fixture_get(f, what, 2);
    return given;
}

static void what_was_run_once_gives_its_memory_back(void **state)
{
    (void)state;
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        struct fixture f;
        fixture_open(&f, graph_text, dynamic);
        size_t first = kept_after(&f, "first");
        assert_true(first >= (256 << 10));
        size_t both = kept_after(&f, "second");
        fixture_close(&f);
        fixture_open(&f, graph_text, dynamic);
        assert_int_equal(both, kept_after(&f, "second"));
        assert_float_equal(fixture_get(&f, "first", 2), 256.0 * 256 * 1024, 0);
        fixture_close(&f);
        assert_int_equal(given, 0);
    }
}

static void what_is_run_again_keeps_it(void **state)
{
    (void)state;
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        struct fixture f;
        fixture_open(&f, graph_text, dynamic);
        kept_after(&f, "first");
        size_t first = kept_after(&f, "first");
        size_t both = kept_after(&f, "second");
        assert_true(both > first);
        assert_int_equal(kept_after(&f, "first"), both);
        fixture_close(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_run_once_gives_its_memory_back),
        cmocka_unit_test(what_is_run_again_keeps_it),
    };
    return cmocka_run_group_tests(tests, count, NULL);
}
