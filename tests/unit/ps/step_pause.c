/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads that read between steps, against a thread that changes two numbers in each step: a reader
 * never sees one changed and not the other, and knows the step.
 */
#include "ps/step_pause.h"

#include <pthread.h>
#include <stdatomic.h>

#include "lib/unit.h"

#define READERS 4
#define READS 200 /* of each, before the steps end */

struct counted {
    struct step_pause *pause;
    int64_t before, after; /* equal between two steps */
};

struct reader {
    struct counted *counted;
    int wrong;
    atomic_int n;
};

static void *read_often(void *argument)
{
    struct reader *reader = argument;
    struct counted *counted = reader->counted;
    for (;;) {
        struct error err = ERROR_INIT;
        int64_t step;
        if (step_pause_begin(counted->pause, 30, &step, &err)) {
            reader->wrong += err.code != ERR_UNAVAILABLE;
            return NULL;
        }
        reader->wrong += counted->before != step || counted->after != step;
        atomic_fetch_add(&reader->n, 1);
        step_pause_end(counted->pause);
    }
}

static void run_step(struct counted *counted)
{
    counted->before++;
    counted->after++;
    step_pause_hold(counted->pause, counted->after);
}

static void test_readers_see_whole_steps(void **state)
{
    struct counted counted = {.pause = step_pause_new()};
    struct reader readers[READERS] = {{0}};
    pthread_t threads[READERS];
    (void)state;
    for (int i = 0; i < READERS; i++) {
        readers[i].counted = &counted;
        assert_int_equal(pthread_create(&threads[i], NULL, read_often, &readers[i]), 0);
    }
    for (int i = 0; i < READERS; i++)
        while (atomic_load(&readers[i].n) < READS)
            run_step(&counted);
    step_pause_close(counted.pause);
    int64_t last = counted.after;
    for (int i = 0; i < READERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(readers[i].wrong, 0);
    }
    assert_int_equal(counted.before, last);
    step_pause_free(counted.pause);
}

static void test_a_wait_ends(void **state)
{
    struct step_pause *pause = step_pause_new();
    struct error err = ERROR_INIT;
    int64_t step;
    (void)state;
    assert_int_equal(step_pause_begin(pause, 0.01, &step, &err), ERR_RETRY);
    assert_false(step_pause_is_wanted(pause));
    step_pause_hold(pause, 3); /* nobody waits: it returns */
    step_pause_close(pause);
    error_clear(&err);
    assert_int_equal(step_pause_begin(pause, 30, &step, &err), ERR_UNAVAILABLE);
    step_pause_free(pause);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_readers_see_whole_steps),
        cmocka_unit_test(test_a_wait_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
