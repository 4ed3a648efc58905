/* SPDX-License-Identifier: Apache-2.0
 *
 * Workers with states that come back: with what they have given, or with nothing.
 */
#include "resource/worker_value.h"

#include "lib/unit.h"
#include "resource/clock.h"

struct answer {
    struct clock_waiter waiter; /* first */
    int answers;
    struct clock_result result;
    struct error failure;
};

static void answered(struct clock_waiter *waiter, const struct clock_result *result,
                     const struct error *failure)
{
    struct answer *answer = (struct answer *)waiter;
    answer->answers++;
    if (failure)
        answer->failure = *failure;
    else
        answer->result = *result;
}

static struct answer join(struct clock *clock, uint64_t incarnation)
{
    struct answer answer = {.waiter.done = answered};
    clock_join(clock, &(struct push_id){0, incarnation, 0}, &answer.waiter);
    return answer;
}

/* Pushes a step, which is applied. */
static void push(struct clock *clock, uint64_t incarnation, int64_t seq)
{
    struct answer round = {.waiter.done = answered}, pushed = round;
    struct error err = ERROR_INIT;
    int64_t version = clock_version(clock);
    clock_push(clock, &(struct push_id){0, incarnation, seq}, version, &pushed.waiter);
    clock_round(clock, &round.waiter);
    assert_int_equal(clock_advance(clock, round.result.version, &err), 0);
    assert_true(pushed.answers == 1 && !pushed.result.asked);
}

static void who_lost_its_state_takes_all_back(void **state)
{
    struct variable_store *store = variable_store_new();
    struct clock *clock = resource_get(store, &clock_kind, "default", "train");
    struct answer rest = {.waiter.done = answered}, round = rest;
    struct error err = ERROR_INIT;
    (void)state;
    assert_int_equal(clock_configure(clock, "sync", 1, &err), 0);
    clock_keep_states(clock);
    assert_int_equal(join(clock, 1).result.seq, 0);
    assert_int_equal(join(clock, 2).result.seq, 0); /* it had done nothing */
    push(clock, 2, 1);
    clock_rest(clock, &(struct push_id){0, 2, 1}, &rest.waiter);
    assert_int_equal(rest.answers, 1); /* nobody asks */
    assert_int_equal(join(clock, 3).result.seq, 1);
    assert_false(clock_has_failed(clock, &err));
    push(clock, 3, 2);
    struct answer lost = join(clock, 4);
    unit_assert_error(lost.failure.code, lost.failure, ERR_UNAVAILABLE,
                      "worker:0 was started again without what it had kept since its step 1: all "
                      "have to go back to a checkpoint");
    assert_true(clock_has_failed(clock, &err));
    clock_round(clock, &round.waiter); /* also for whoever updates */
    assert_int_equal(round.failure.code, ERR_UNAVAILABLE);
    rest = (struct answer){.waiter.done = answered};
    clock_rest(clock, &(struct push_id){0, 3, 2}, &rest.waiter);
    assert_int_equal(rest.failure.code, ERR_UNAVAILABLE); /* it was replaced */
    variable_store_free(store);
}

static void who_joins_while_others_rest_holds_nobody_back(void **state)
{
    struct variable_store *store = variable_store_new();
    struct clock *clock = resource_get(store, &clock_kind, "default", "train");
    struct answer first = {.waiter.done = answered}, late = first, rest = first, pause = first;
    struct answer waits = first;
    struct error err = ERROR_INIT;
    (void)state;
    assert_int_equal(clock_configure(clock, "sync", 0, &err), 0);
    clock_keep_states(clock);
    clock_join(clock, &(struct push_id){0, 1, 0}, &first.waiter);
    assert_int_equal(first.answers, 1);
    push(clock, 1, 1);
    clock_ask(clock);
    clock_join(clock, &(struct push_id){1, 2, 0}, &late.waiter);
    clock_pause(clock, 0, &pause.waiter);
    clock_push(clock, &(struct push_id){1, 2, 1}, 1, &waits.waiter); /* in a round with 0 */
    assert_true(late.answers == 1 && !pause.answers);                /* 0 has not given its state */
    clock_rest(clock, &(struct push_id){0, 1, 1}, &rest.waiter);
    assert_true(!waits.answers && !rest.answers && pause.answers == 1);
    clock_end_ask(clock);
    assert_true(!rest.answers);
    clock_resume(clock);
    assert_true(!waits.answers && rest.answers == 1);
    assert_int_equal(rest.result.version, 1);
    variable_store_free(store);
}

static void give(struct worker_values *values, int64_t worker, float value)
{
    struct tensor t = TENSOR_INIT;
    struct error err = ERROR_INIT;
    assert_int_equal(tensor_alloc(&t, FLOAT32, &SHAPE_SCALAR, &err), 0);
    tensor_set_float64(&t, 0, (double)value);
    worker_value_give(values, worker, &t);
    tensor_release(&t);
}

static double take(struct worker_values *values, int64_t worker, int64_t n)
{
    struct tensor t;
    struct error err = ERROR_INIT;
    assert_int_equal(worker_value_take(values, worker, n, &t, &err), 0);
    double value = t.type == DTYPE_INVALID ? -1 : tensor_get_float64(&t, 0);
    tensor_release(&t);
    return value;
}

static void what_was_given_is_shared_out(void **state)
{
    struct variable_store *store = variable_store_new();
    struct worker_values *values = resource_get(store, &worker_value_kind, "default", "r");
    struct error err = ERROR_INIT;
    struct tensor other = TENSOR_INIT, t;
    struct shape shape = shape_vector(2);
    (void)state;
    for (int i = 0; i < 7; i++)
        give(values, i, (float)(1 << i));
    assert_true(take(values, 5, 0) == 32);
    assert_true(take(values, 1, 3) == 2 + 16); /* 1 and 4 */
    assert_true(take(values, 1, 3) == 2 + 16); /* once */
    assert_true(take(values, 0, 3) == 1 + 8 + 64);
    assert_true(take(values, 2, 3) == 4 + 32);
    assert_true(take(values, 3, 0) == -1 && take(values, 9, 20) == -1);
    give(values, 1, 5);
    assert_true(take(values, 1, 3) == 5);
    assert_int_equal(tensor_alloc(&other, FLOAT32, &shape, &err), 0);
    worker_value_give(values, 3, &other);
    tensor_release(&other);
    unit_assert_error(worker_value_take(values, 0, 3, &t, &err), err, ERR_DATA,
                      "workers have float32[] and float32[2], of which there is no sum");
    variable_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_lost_its_state_takes_all_back),
        cmocka_unit_test(who_joins_while_others_rest_holds_nobody_back),
        cmocka_unit_test(what_was_given_is_shared_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
