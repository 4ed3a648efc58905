/* SPDX-License-Identifier: Apache-2.0
 *
 * Members of a collective that cancel calls, and that agree on a last step.
 */
#include <time.h>

#include "base/time.h"
#include "lib/local_collective.h"
#include "lib/reductions.h"

static void test_cancelled(void **state)
{
    static const enum collective_kind kind = COLLECTIVE_SUM;
    struct members all;
    struct reply reply;
    struct tensor values[MEMBERS_MAX][8];
    (void)state;
    members_start(&all, 2);
    for (int k = 0; k < 2; k++)
        fill(&values[k][0], FLOAT32, &SHAPE_SCALAR, k);
    struct collective_call call = {{"g", 1, 0}, values[0], &kind, 1, .yields = false};
    member_call(&all, 0, &call, &reply);
    struct collective *collective = all.ends[0].collective;
    assert_true(collective->cancel(collective, &reply.waiter));
    assert_false(collective->cancel(collective, &reply.waiter));
    assert_false(reply.done);
    reply_release(&reply);
    struct collective_key key = {"g", 2, 0};
    check_call(&all, &key, values, &kind, 1);
    release_all(&all, values, 1);
    members_stop(&all);
}

struct local_reply {
    struct collective_waiter waiter; /* must be first */
    double value;
};

static void note_value(struct collective_waiter *waiter, const struct collective_results *results,
                       const struct error *err)
{
    assert_null(err);
    assert_int_equal(results->members, 2);
    ((struct local_reply *)waiter)->value = tensor_get_float64(&results->values[0], 0);
}

/* Between threads: a call that all have cancelled leaves nothing behind, not even its kind. */
static void test_cancelled_by_all(void **state)
{
    static const enum collective_kind sum = COLLECTIVE_SUM, mean = COLLECTIVE_MEAN;
    struct collective *members[2];
    struct local_reply replies[2] = {{.waiter.done = note_value}, {.waiter.done = note_value}};
    struct tensor values[2];
    (void)state;
    collective_local_new(2, members);
    for (int k = 0; k < 2; k++)
        fill(&values[k], FLOAT32, &SHAPE_SCALAR, k);
    double total = tensor_get_float64(&values[0], 0) + tensor_get_float64(&values[1], 0);
    struct collective_call call = {{"g", 1, 0}, &values[0], &mean, 1, .yields = false};
    members[0]->reduce(members[0], &call, &replies[0].waiter);
    assert_true(members[0]->cancel(members[0], &replies[0].waiter));
    for (int k = 0; k < 2; k++) {
        call = (struct collective_call){{"g", 1, 0}, &values[k], &sum, 1, .yields = false};
        members[k]->reduce(members[k], &call, &replies[k].waiter);
    }
    assert_true(total != 0);
    for (int k = 0; k < 2; k++) {
        assert_true(replies[k].value == total);
        tensor_release(&values[k]);
        members[k]->free(members[k]);
    }
}

/* A call in a thread of its own, which is slow after it was answered. */
struct slow_call {
    struct collective_waiter waiter; /* must be first */
    struct collective *collective;
    struct tensor *value;
    pthread_t thread;
    pthread_barrier_t answered;
    atomic_bool is_over;
};

static void be_slow(struct collective_waiter *waiter, const struct collective_results *results,
                    const struct error *failure)
{
    struct slow_call *slow = (struct slow_call *)waiter;
    (void)results;
    (void)failure;
    pthread_barrier_wait(&slow->answered);
    nanosleep(&(struct timespec){.tv_nsec = 50 * 1000 * 1000}, NULL);
    atomic_store(&slow->is_over, true);
}

static void *call_slowly(void *argument)
{
    static const enum collective_kind sum = COLLECTIVE_SUM;
    struct slow_call *slow = argument;
    struct collective_call call = {{"g", 1, 0}, slow->value, &sum, 1, .yields = false};
    slow->collective->reduce(slow->collective, &call, &slow->waiter);
    return NULL;
}

/* Returns when the call was answered, but has not returned. */
static void slow_begin(struct slow_call *slow, struct collective *collective, struct tensor *value)
{
    *slow = (struct slow_call){.waiter.done = be_slow, .collective = collective, .value = value};
    pthread_barrier_init(&slow->answered, NULL, 2);
    assert_int_equal(pthread_create(&slow->thread, NULL, call_slowly, slow), 0);
    pthread_barrier_wait(&slow->answered);
}

static void slow_end(struct slow_call *slow)
{
    pthread_join(slow->thread, NULL);
    pthread_barrier_destroy(&slow->answered);
}

/* As when a step's last call is answered, and another thread ends the program. */
static void test_freed_while_a_call_returns(void **state)
{
    struct members all;
    struct slow_call slow;
    struct tensor value;
    (void)state;
    fill(&value, FLOAT32, &SHAPE_SCALAR, 0);
    members_start(&all, 2);
    member_kill(&all.ends[1]);
    slow_begin(&slow, all.ends[0].collective, &value);
    member_kill(&all.ends[0]);
    assert_true(atomic_load(&slow.is_over));
    slow_end(&slow);
    members_stop(&all);
    tensor_release(&value);
}

static void test_freed_while_a_call_returns_to_a_thread(void **state)
{
    struct collective *alone;
    struct slow_call slow;
    struct tensor value;
    (void)state;
    fill(&value, FLOAT32, &SHAPE_SCALAR, 0);
    collective_local_new(1, &alone);
    slow_begin(&slow, alone, &value);
    alone->free(alone);
    slow_end(&slow);
    tensor_release(&value);
}

/* Waits until all know that last step. */
static void check_last(const struct members *all, int64_t expected)
{
    for (int k = 0; k < all->n; k++) {
        double end = time_now() + 20;
        int64_t step = -1;
        while (!collective_links_last_step(all->ends[k].collective, &step) || step != expected) {
            assert_true(time_now() < end);
            nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
        }
    }
}

static void begin_all(struct members *all, int64_t step)
{
    for (int k = 0; k < all->n; k++)
        assert_true(collective_links_begin(all->ends[k].collective, step));
}

/* No member has begun the next step, so none does, whoever asks to end, even if two do. */
static void test_end_between_steps(void **state)
{
    struct members all;
    (void)state;
    members_start(&all, 3);
    begin_all(&all, 7);
    check_last(&all, INT64_MAX); /* no member has asked */
    collective_links_ask_to_end(all.ends[2].collective);
    collective_links_ask_to_end(all.ends[0].collective);
    check_last(&all, 7);
    for (int k = 0; k < 3; k++)
        assert_false(collective_links_begin(all.ends[k].collective, 8));
    members_stop(&all);
}

/* One member is in the next step already: all run that step, and no further one. */
static void test_end_after_what_was_begun(void **state)
{
    static const enum collective_kind kind = COLLECTIVE_SUM;
    struct members all;
    struct tensor values[MEMBERS_MAX][8];
    (void)state;
    members_start(&all, 3);
    for (int k = 0; k < 3; k++)
        fill(&values[k][0], FLOAT32, &SHAPE_SCALAR, k);
    begin_all(&all, 6);
    assert_true(collective_links_begin(all.ends[1].collective, 7));
    collective_links_ask_to_end(all.ends[2].collective);
    check_last(&all, 7);
    begin_all(&all, 7);
    check_call(&all, &(struct collective_key){"g", 7, 0}, values, &kind, 1);
    for (int k = 0; k < 3; k++) {
        assert_false(collective_links_begin(all.ends[k].collective, 8));
        assert_int_equal(collective_links_first(all.ends[k].collective), 0);
    }
    release_all(&all, values, 1);
    members_stop(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_cancelled_by_all),
        cmocka_unit_test(test_freed_while_a_call_returns),
        cmocka_unit_test(test_freed_while_a_call_returns_to_a_thread),
        cmocka_unit_test(test_end_between_steps),
        cmocka_unit_test(test_end_after_what_was_begun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
