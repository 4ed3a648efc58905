/* SPDX-License-Identifier: Apache-2.0
 *
 * Pools: memory that came back is handed out next, and is inaccessible in between; and the bytes
 * that a pool takes of its device.
 */
#include "exec/device/pool.h"

#include "base/guard.h"
#include "lib/session.h"

#ifdef __SANITIZE_ADDRESS__
#define IS_GUARDED(data) __asan_address_is_poisoned(data)
#else
#define IS_GUARDED(data) false
#endif

#define BYTES 100

static void what_came_back_is_handed_out(void **state)
{
    struct pool *pool = pool_new(fixture_device(), true);
    (void)state;
    struct buffer *first = pool_alloc(pool, BYTES), *second = pool_alloc(pool, BYTES);
    void *data = first->data;
    assert_ptr_not_equal(second->data, data);
    first->free(first);
    first = pool_alloc(pool, BYTES);
    assert_ptr_equal(first->data, data);
    first->free(first);
    pool_free(pool);
    second->free(second);
}

static bool guards(void)
{
#ifdef __SANITIZE_ADDRESS__
    return fixture_device()->is_host;
#else
    return false;
#endif
}

/* Builds with AddressSanitizer detect reads and writes of released memory. */
static void what_is_idle_is_guarded(void **state)
{
    (void)state;
    if (!guards())
        skip();
    struct pool *pool = pool_new(fixture_device(), true);
    struct buffer *buffer = pool_alloc(pool, BYTES);
    char *data = buffer->data;
    memset(data, 1, BYTES);
    assert_false(IS_GUARDED(data));
    buffer->free(buffer);
    assert_true(IS_GUARDED(data) && IS_GUARDED(data + BYTES - 1));
    buffer = pool_alloc(pool, BYTES);
    assert_ptr_equal(buffer->data, data);
    assert_false(IS_GUARDED(data) || IS_GUARDED(data + BYTES - 1));
    memset(data, 2, BYTES);
    buffer->free(buffer);
    pool_free(pool);
}

#define MIB ((size_t)1 << 20)

static size_t given; /* bytes of the last block, and how many blocks there were */
static int n_given;

static struct buffer *alloc(struct device *device, size_t bytes)
{
    (void)device;
    given = bytes;
    n_given++;
    return buffer_new(bytes);
}

static struct device counts = {.is_host = true,
                               .memory = &(const struct device_memory){.alloc = alloc}};

static void take(struct pool *pool, size_t bytes)
{
    struct buffer *buffer = pool_alloc(pool, bytes);
    assert_non_null(buffer);
    assert_int_equal(buffer->bytes, bytes);
    buffer->free(buffer);
}

static void what_is_large_is_not_rounded(void **state)
{
    struct pool *pool = pool_new(&counts, true);
    (void)state;
    n_given = 0;
    take(pool, 1000);
    assert_int_equal(given, 1024);
    take(pool, 8 * MIB + 40000); /* of a class of 10 MiB */
    assert_int_equal(given, 8 * MIB + 40000);
    take(pool, 8 * MIB + 40000);
    take(pool, 8 * MIB + 1);
    assert_int_equal(n_given, 2);
    pool_free(pool);
}

/* Whatever the number of sizes, a class has no more blocks than are in use at once. */
static void a_second_size_takes_the_whole_class(void **state)
{
    struct pool *pool = pool_new(&counts, true);
    (void)state;
    n_given = 0;
    take(pool, 8 * MIB + 1);
    take(pool, 8 * MIB + 2);
    assert_int_equal(given, 10 * MIB);
    for (size_t bytes = 8 * MIB + 3; bytes <= 10 * MIB; bytes += MIB / 4)
        take(pool, bytes);
    assert_int_equal(n_given, 2);
    pool_free(pool);
}

static void a_pool_has_what_is_large_enough(void **state)
{
    struct pool *pool = pool_new(&counts, true);
    (void)state;
    assert_false(pool_has(pool, 8 * MIB + 1));
    take(pool, 8 * MIB + 2);
    assert_true(pool_has(pool, 8 * MIB + 1));
    assert_true(pool_has(pool, 8 * MIB + 2));
    assert_false(pool_has(pool, 8 * MIB + 3)); /* of the same class */
    pool_free(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_came_back_is_handed_out),
        cmocka_unit_test(what_is_idle_is_guarded),
        cmocka_unit_test(what_is_large_is_not_rounded),
        cmocka_unit_test(a_second_size_takes_the_whole_class),
        cmocka_unit_test(a_pool_has_what_is_large_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
