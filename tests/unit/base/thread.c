/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads have enough stack for the functions they call, however small the C library's default is.
 */
#include "base/thread.h"

#include <stdint.h>
#include <string.h>

#include "lib/unit.h"

#define USED (3 * THREAD_STACK_BYTES / 4)

static void *use_stack(void *argument)
{
    volatile char room[USED];
    memset((void *)room, 1, sizeof room);
    *(int *)argument = room[USED / 2];
    return argument;
}

static void set_default(size_t bytes)
{
    pthread_attr_t attr;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, bytes), 0);
    assert_int_equal(pthread_setattr_default_np(&attr), 0);
    pthread_attr_destroy(&attr);
}

static void test_stack(void **state)
{
    pthread_attr_t attr;
    pthread_t thread;
    size_t before;
    int used = 0;
    void *result;
    (void)state;
    assert_int_equal(pthread_getattr_default_np(&attr), 0);
    assert_int_equal(pthread_attr_getstacksize(&attr, &before), 0);
    pthread_attr_destroy(&attr);
    set_default(128 << 10);
    assert_int_equal(thread_start(&thread, use_stack, &used), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_int_equal(used, 1);
    assert_ptr_equal(result, &used);
    set_default(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_stack)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
