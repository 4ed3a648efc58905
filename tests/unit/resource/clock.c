/* SPDX-License-Identifier: Apache-2.0
 *
 * A clock as a resource: its decisions, counts and messages.
 */
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "lib/clock_bench.h"

static void synchronous_rounds_have_everyone(void **state)
{
    struct bench b;
    struct waiter w[3], round = new_waiter();
    struct error err = ERROR_INIT;
    (void)state;
    bench_open(&b, "sync", 3);
    join(&b, 0, 10);
    join(&b, 2, 12);
    push(&b, (struct push_id){2, 12, 1}, 0, &w[2]);
    push(&b, (struct push_id){0, 10, 1}, 0, &w[0]);
    clock_round(b.clock, &round.waiter);
    assert_int_equal(round.replies, 0); /* 1 is expected and has not come */
    join(&b, 1, 11);
    push(&b, (struct push_id){1, 11, 1}, 0, &w[1]);
    assert_int_equal(round.replies, 1);
    assert_int_equal(round.result.version, 1);
    assert_int_equal(round.result.members.n, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(round.result.members.ids[i].worker, i); /* by rank, as they came or not */
        assert_int_equal(w[i].replies, 0);
    }
    assert_int_equal(clock_advance(b.clock, 2, &err), ERR_DATA);
    assert_int_equal(clock_advance(b.clock, 1, &err), 0);
    for (int i = 0; i < 3; i++)
        assert_true(w[i].replies == 1 && w[i].result.counted && w[i].result.version == 1);
    clock_leave(b.clock, &(struct push_id){1, 11, 0}); /* now no round waits for it */
    push(&b, (struct push_id){0, 10, 2}, 1, &w[0]);
    push(&b, (struct push_id){2, 12, 2}, 1, &w[2]);
    assert_int_equal(apply_round(&b), 222);
    bench_close(&b);
}

static void late_pushes_are_counted_as_such(void **state)
{
    struct bench b;
    struct waiter w[3];
    struct clock_member seen[3];
    (void)state;
    bench_open(&b, "sync,backup=1", 3);
    for (int i = 0; i < 3; i++)
        join(&b, i, 1);
    push(&b, (struct push_id){2, 1, 1}, 0, &w[2]);
    push(&b, (struct push_id){1, 1, 1}, 0, &w[1]);
    push(&b, (struct push_id){0, 1, 1}, 0, &w[0]); /* the third of two */
    assert_int_equal(apply_round(&b), 1121);
    assert_true(w[0].replies == 1 && !w[0].result.counted && w[0].result.version == 1);
    assert_true(w[1].result.counted && w[2].result.counted);
    push(&b, (struct push_id){1, 1, 2}, 0, &w[1]); /* of an old version */
    assert_true(w[1].replies == 1 && !w[1].result.counted);
    push(&b, (struct push_id){2, 1, 1}, 1, &w[2]); /* counted already */
    assert_true(w[2].replies == 1 && w[2].result.counted);
    assert_int_equal(clock_workers(b.clock, seen, 3), 3);
    assert_true(seen[0].late == 1 && seen[0].counted == 0 && seen[0].behind == 1);
    assert_true(seen[1].late == 1 && seen[1].counted == 1 && seen[1].pushed == 2);
    assert_true(seen[2].duplicate == 1 && seen[2].counted == 1 && seen[2].pushed == 1);
    bench_close(&b);
}

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Returns the seconds for a push of each worker; with bound 0 all wait for each other. */
static double time_pushes(int workers)
{
    struct bench b;
    struct waiter *w = mem_array((size_t)workers, sizeof *w);
    bench_open(&b, "ssp,bound=0", workers);
    for (int i = 0; i < workers; i++)
        join(&b, i, 1);
    double start = cpu_seconds();
    for (int i = 0; i < workers; i++)
        push(&b, (struct push_id){i, 1, 1}, 0, &w[i]);
    double seconds = cpu_seconds() - start;
    apply_round(&b);
    bench_close(&b);
    mem_free(w);
    return seconds;
}

/* A push looks at each waiting worker once, not at all workers for each of them: with 8 times the
 * workers and pushes the work grows 64 times, not 512 times. */
static void a_push_looks_at_each_worker_once(void **state)
{
    double few = INFINITY, many = INFINITY;
    (void)state;
    for (int i = 0; i < 5; i++) {
        few = fmin(few, time_pushes(100));
        many = fmin(many, time_pushes(800));
    }
    assert_true(many < 160 * few);
}

static void an_older_life_is_refused(void **state)
{
    struct bench b;
    struct waiter w, second = new_waiter();
    (void)state;
    bench_open(&b, "async", 2);
    join(&b, 0, 5);
    push(&b, (struct push_id){0, 5, 1}, 0, &w); /* whole, but its worker dies now */
    clock_join(b.clock, &(struct push_id){0, 6, 0}, &second.waiter);
    assert_int_equal(w.replies, 1);
    assert_string_equal(w.failure.text, "worker:0, incarnation 5: replaced by incarnation 6");
    assert_int_equal(second.replies, 0); /* earlier pushes are decided first */
    assert_int_equal(apply_round(&b), 1);
    assert_true(second.replies == 1 && second.result.seq == 1 && second.result.version == 1);
    push(&b, (struct push_id){0, 5, 2}, 0, &w); /* it was only frozen */
    unit_assert_error(w.failure.code, w.failure, ERR_UNAVAILABLE,
                      "worker:0, incarnation 5: replaced by incarnation 6");
    push(&b, (struct push_id){1, 9, 1}, 0, &w);
    unit_assert_error(w.failure.code, w.failure, ERR_UNAVAILABLE,
                      "worker:1 did not join the clock 'train'");
    bench_close(&b);
}

static void deadlines_name_who_is_missing(void **state)
{
    struct bench b;
    struct waiter w = new_waiter();
    (void)state;
    bench_open(&b, "sync", 2);
    join(&b, 0, 1);
    w.waiter.timeout = 0.05;
    clock_push(b.clock, &(struct push_id){0, 1, 1}, 0, &w.waiter);
    for (int i = 0; i < 1000 && !w.replies; i++)
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    unit_assert_error(w.failure.code, w.failure, ERR_RETRY,
                      "no answer in 0.1 s, waiting for worker:1 (has not come yet) in round 1");
    bench_close(&b);
}

static void a_failure_reaches_all(void **state)
{
    struct bench b;
    struct waiter w, round = new_waiter();
    struct error reason = ERROR_INIT;
    (void)state;
    bench_open(&b, "sync", 1);
    join(&b, 0, 1);
    push(&b, (struct push_id){0, 1, 1}, 0, &w);
    clock_round(b.clock, &round.waiter);
    assert_int_equal(round.replies, 1);
    error_set(&reason, ERR_UNAVAILABLE, "ps:1 is gone");
    clock_fail(b.clock, &reason);
    assert_string_equal(w.failure.text, "ps:1 is gone");
    round = new_waiter();
    clock_round(b.clock, &round.waiter); /* half an update may be in the variables */
    assert_string_equal(round.failure.text, "ps:1 is gone");
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(synchronous_rounds_have_everyone),
        cmocka_unit_test(late_pushes_are_counted_as_such),
        cmocka_unit_test(a_push_looks_at_each_worker_once),
        cmocka_unit_test(an_older_life_is_refused),
        cmocka_unit_test(deadlines_name_who_is_missing),
        cmocka_unit_test(a_failure_reaches_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
