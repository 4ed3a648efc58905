/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "exec/step/step.h"
#include "lib/unit.h"

static int released[8], n_released;

static void release(void *object)
{
    released[n_released++] = *(const int *)object;
}

static void release_other(void *object)
{
    (void)object;
}

static void resources_by_handle(void **unused)
{
    (void)unused;
    struct step step = {0};
    int a = 1, b = 2;
    assert_null(step_resource_get(&step, 1, release));
    uint64_t first = step_resource_add(&step, &a, release);
    uint64_t second = step_resource_add(&step, &b, release);
    assert_true(first && second && first != second);
    assert_ptr_equal(step_resource_get(&step, first, release), &a);
    assert_ptr_equal(step_resource_get(&step, second, release), &b);
    assert_null(step_resource_get(&step, second, release_other)); /* of another kind */
    assert_null(step_resource_get(&step, 0, release));
    assert_null(step_resource_get(&step, second + 1, release));
    assert_null(step_resource_get(&step, UINT64_MAX, release));
    n_released = 0;
    step_end(&step);
    assert_int_equal(n_released, 2);
    assert_int_equal(released[0], 2); /* the last made goes first */
    assert_int_equal(released[1], 1);
    assert_null(step_resource_get(&step, first, release));
    step_end(&step);
    assert_int_equal(n_released, 2);
}

#define THREADS 4
#define EACH 500

static struct step shared;
static atomic_int n_freed;

static void count(void *object)
{
    (void)object;
    atomic_fetch_add(&n_freed, 1);
}

static void *add_many(void *argument)
{
    for (int i = 0; i < EACH; i++) {
        uint64_t handle = step_resource_add(&shared, argument, count);
        if (step_resource_get(&shared, handle, count) != argument)
            return argument;
    }
    return NULL;
}

static void threads_share_a_step(void **unused)
{
    (void)unused;
    pthread_t threads[THREADS];
    int objects[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, &objects[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    step_end(&shared);
    assert_int_equal(atomic_load(&n_freed), THREADS * EACH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resources_by_handle),
        cmocka_unit_test(threads_share_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
