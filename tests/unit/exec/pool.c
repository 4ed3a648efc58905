/* SPDX-License-Identifier: Apache-2.0
 *
 * What a pool takes of its device, in bytes.
 */
#include "exec/device/pool.h"

#include "lib/unit.h"
#include "tensor/tensor.h"

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

static struct device device = {.is_host = true, .alloc = alloc};

static void take(struct pool *pool, size_t bytes)
{
    struct buffer *buffer = pool_alloc(pool, bytes);
    assert_non_null(buffer);
    assert_int_equal(buffer->bytes, bytes);
    buffer->free(buffer);
}

static void what_is_large_is_not_rounded(void **state)
{
    struct pool *pool = pool_new(&device, true);
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

/* However many sizes there are, a class has no more blocks than are used at once. */
static void a_second_size_takes_the_whole_class(void **state)
{
    struct pool *pool = pool_new(&device, true);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_large_is_not_rounded),
        cmocka_unit_test(a_second_size_takes_the_whole_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
