/* SPDX-License-Identifier: Apache-2.0
 *
 * A limit on memory: what it counts, which pools it asks to give memory back, and its messages.
 */
#include "base/memory.h"

#include "exec/device/pool.h"
#include "lib/session.h"

#define MIB ((size_t)1 << 20)

static void blocks_count_until_they_are_freed(void **state)
{
    (void)state;
    void *first = mem_try(6 * MIB), *none, *small;
    assert_non_null(first);
    assert_string_equal(mem_limit_text(), "");
    none = mem_try(6 * MIB);
    assert_null(none);
    assert_string_equal(mem_limit_text(), ": the 10 MiB of ps:0 are in use");
    small = mem_try(1000);
    assert_non_null(small);
    mem_free(first);
    first = mem_try(6 * MIB);
    assert_non_null(first);
    assert_string_equal(mem_limit_text(), "");
    assert_true(mem_charge(2 * MIB));
    assert_false(mem_charge(4 * MIB));
    mem_discharge(2 * MIB);
    mem_free(first);
    mem_free(small);
}

static void what_is_only_kept_is_given_back(void **state)
{
    struct pool *pool = pool_new(fixture_device(), true);
    struct buffer *buffer = pool_alloc(pool, 6 * MIB);
    void *block;
    (void)state;
    assert_non_null(buffer);
    assert_null(mem_try(6 * MIB));
    buffer->free(buffer); /* the pool keeps it */
    block = mem_try(6 * MIB);
    assert_non_null(block);
    mem_free(block);
    pool_free(pool);
}

static void errors_say_whose_limit(void **state)
{
    struct error err = ERROR_INIT;
    struct shape shape = shape_vector(4 * 1000 * 1000);
    struct tensor t;
    (void)state;
    assert_int_equal(tensor_alloc(&t, FLOAT32, &shape, &err), ERR_OS);
    assert_string_equal(err.text, "no memory for tensor float32[4000000] (16000000 bytes): the 10 "
                                  "MiB of ps:0 are in use");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_count_until_they_are_freed),
        cmocka_unit_test(what_is_only_kept_is_given_back),
        cmocka_unit_test(errors_say_whose_limit),
    };
    fixture_device(); /* memory of its libraries is not counted */
    mem_set_limit(10 * MIB, "ps:0");
    return cmocka_run_group_tests_name("memory_limit", tests, NULL, NULL);
}
