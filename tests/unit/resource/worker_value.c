/* SPDX-License-Identifier: Apache-2.0
 *
 * Workers with states that come back: with the state that they gave, with a journal, or with
 * nothing.
 */
#include "resource/worker_value.h"

#include "lib/unit.h"
#include "resource/clock.h"

struct reply {
    struct clock_waiter waiter; /* must be first */
    int replies;
    struct clock_result result;
    struct error failure;
};

static void answered(struct clock_waiter *waiter, const struct clock_result *result,
                     const struct error *failure)
{
    struct reply *reply = (struct reply *)waiter;
    reply->replies++;
    if (failure)
        reply->failure = *failure;
    else
        reply->result = *result;
}

static struct reply join(struct clock *clock, uint64_t incarnation)
{
    struct reply reply = {.waiter.done = answered};
    clock_join(clock, &(struct push_id){0, incarnation, 0}, &reply.waiter);
    return reply;
}

/* Pushes a step that is applied. */
static void push(struct clock *clock, uint64_t incarnation, int64_t seq)
{
    struct reply round = {.waiter.done = answered}, pushed = round;
    struct error err = ERROR_INIT;
    int64_t version = clock_version(clock);
    clock_push(clock, &(struct push_id){0, incarnation, seq}, version, &pushed.waiter);
    clock_round(clock, &round.waiter);
    assert_int_equal(clock_advance(clock, round.result.version, &err), 0);
    assert_true(pushed.replies == 1 && !pushed.result.asked);
}

static void who_lost_its_state_takes_all_back(void **state)
{
    struct variable_store *store = variable_store_new();
    struct clock *clock = resource_get(store, &clock_kind, "default", "train");
    struct reply rest = {.waiter.done = answered}, round = rest;
    struct error err = ERROR_INIT;
    (void)state;
    assert_int_equal(clock_configure(clock, "sync", 1, &err), 0);
    clock_keep_states(clock);
    assert_int_equal(join(clock, 1).result.seq, 0);
    assert_int_equal(join(clock, 2).result.seq, 0); /* it had done no step */
    push(clock, 2, 1);
    clock_rest(clock, &(struct push_id){0, 2, 1}, &rest.waiter);
    assert_int_equal(rest.replies, 1); /* no state is asked for */
    assert_int_equal(join(clock, 3).result.seq, 1);
    assert_false(clock_has_failed(clock, &err));
    push(clock, 3, 2);
    struct reply lost = join(clock, 4);
    unit_assert_error(lost.failure.code, lost.failure, ERR_UNAVAILABLE,
                      "worker:0 was started again without what it had kept since its step 1: all "
                      "have to go back to a checkpoint");
    assert_true(clock_has_failed(clock, &err));
    clock_round(clock, &round.waiter); /* works for the updater, too */
    assert_int_equal(round.failure.code, ERR_UNAVAILABLE);
    rest = (struct reply){.waiter.done = answered};
    clock_rest(clock, &(struct push_id){0, 3, 2}, &rest.waiter);
    assert_int_equal(rest.failure.code, ERR_UNAVAILABLE); /* it was replaced */
    variable_store_free(store);
}

static struct reply rejoin(struct clock *clock, uint64_t incarnation, struct journal_head a,
                           struct journal_head b)
{
    const struct journal_head heads[] = {a, b};
    struct reply reply = {.waiter.done = answered};
    clock_rejoin(clock, &(struct push_id){0, incarnation, 0}, heads, 2, &reply.waiter);
    return reply;
}

/* Its last push has or has not reached the clock, and is late or counts. */
static void who_has_a_journal_goes_on(void **state)
{
    struct variable_store *store = variable_store_new();
    struct clock *clock = resource_get(store, &clock_kind, "default", "train");
    struct error err = ERROR_INIT;
    (void)state;
    assert_int_equal(clock_configure(clock, "sync", 1, &err), 0);
    clock_keep_states(clock);
    int64_t own = join(clock, 1).result.incarnation;
    push(clock, 1, 1);
    push(clock, 1, 2);
    struct reply back =
        rejoin(clock, 2, (struct journal_head){own, 3}, (struct journal_head){own, 2});
    assert_true(back.replies == 1 && back.result.seq == 2 && back.result.own &&
                back.result.counted);
    struct reply late = {.waiter.done = answered};
    clock_push(clock, &(struct push_id){0, 2, 3}, 1, &late.waiter); /* of an old version */
    assert_true(late.replies == 1 && !late.result.counted);
    back = rejoin(clock, 3, (struct journal_head){own, 3}, (struct journal_head){own, 2});
    assert_true(back.result.seq == 3 && back.result.own && !back.result.counted);
    struct reply waits = {.waiter.done = answered}, round = waits;
    clock_push(clock, &(struct push_id){0, 3, 4}, 2, &waits.waiter);
    struct reply after = {.waiter.done = answered};
    const struct journal_head fourth = {own, 4};
    clock_rejoin(clock, &(struct push_id){0, 4, 0}, &fourth, 1, &after.waiter);
    assert_true(!after.replies); /* until the last push is decided */
    clock_round(clock, &round.waiter);
    assert_int_equal(clock_advance(clock, round.result.version, &err), 0);
    assert_true(after.replies == 1 && after.result.seq == 4 && after.result.own &&
                after.result.counted);
    assert_false(clock_has_failed(clock, &err));
    back = rejoin(clock, 5, (struct journal_head){own + 1, 4}, (struct journal_head){own, 3});
    unit_assert_error(back.failure.code, back.failure, ERR_UNAVAILABLE,
                      "worker:0 was started again without what it had kept since its step 0: all "
                      "have to go back to a checkpoint");
    variable_store_free(store);
}

/* Two workers; the second comes back while a checkpoint is due, after the first has gone on, or
 * before. */
static void who_comes_back_rests_when_others_do(bool first_goes_on)
{
    struct variable_store *store = variable_store_new();
    struct clock *clock = resource_get(store, &clock_kind, "default", "train");
    struct reply joins[2] = {{.waiter.done = answered}, {.waiter.done = answered}};
    struct reply pushes[2] = {joins[0], joins[0]}, again = joins[0], round = joins[0];
    struct error err = ERROR_INIT;
    assert_int_equal(clock_configure(clock, "sync", 2, &err), 0);
    clock_keep_states(clock);
    for (int64_t i = 0; i < 2; i++)
        clock_join(clock, &(struct push_id){i, 1, 0}, &joins[i].waiter);
    for (int64_t i = 0; i < 2; i++)
        clock_push(clock, &(struct push_id){i, 1, 1}, 0, &pushes[i].waiter);
    if (!first_goes_on)
        clock_ask(clock);
    clock_round(clock, &round.waiter);
    assert_int_equal(clock_advance(clock, 1, &err), 0);
    assert_true(pushes[0].replies == 1 && pushes[0].result.asked == !first_goes_on);
    if (first_goes_on)
        clock_ask(clock);
    const struct journal_head head = {joins[1].result.incarnation, 1};
    clock_rejoin(clock, &(struct push_id){1, 2, 0}, &head, 1, &again.waiter);
    assert_true(again.replies == 1 && again.result.own);
    assert_true(again.result.asked == !first_goes_on);
    variable_store_free(store);
}

static void a_checkpoint_does_not_stop_who_comes_back(void **state)
{
    (void)state;
    who_comes_back_rests_when_others_do(true);
    who_comes_back_rests_when_others_do(false);
}

static void who_joins_while_others_rest_holds_nobody_back(void **state)
{
    struct variable_store *store = variable_store_new();
    struct clock *clock = resource_get(store, &clock_kind, "default", "train");
    struct reply first = {.waiter.done = answered}, late = first, rest = first, pause = first;
    struct reply waits = first;
    struct error err = ERROR_INIT;
    (void)state;
    assert_int_equal(clock_configure(clock, "sync", 0, &err), 0);
    clock_keep_states(clock);
    clock_join(clock, &(struct push_id){0, 1, 0}, &first.waiter);
    assert_int_equal(first.replies, 1);
    push(clock, 1, 1);
    clock_ask(clock);
    clock_join(clock, &(struct push_id){1, 2, 0}, &late.waiter);
    clock_pause(clock, 0, &pause.waiter);
    clock_push(clock, &(struct push_id){1, 2, 1}, 1, &waits.waiter); /* in a round with 0 */
    assert_true(late.replies == 1 && !pause.replies);                /* 0 has not given its state */
    clock_rest(clock, &(struct push_id){0, 1, 1}, &rest.waiter);
    assert_true(!waits.replies && !rest.replies && pause.replies == 1);
    clock_end_ask(clock);
    assert_true(!rest.replies);
    clock_resume(clock);
    assert_true(!waits.replies && rest.replies == 1);
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
    struct str text = STR_INIT;
    worker_value_kind.describe(values, &text);
    assert_string_equal(str_text(&text), "values of 7 workers, 28 bytes");
    str_release(&text);
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
        cmocka_unit_test(who_has_a_journal_goes_on),
        cmocka_unit_test(a_checkpoint_does_not_stop_who_comes_back),
        cmocka_unit_test(who_joins_while_others_rest_holds_nobody_back),
        cmocka_unit_test(what_was_given_is_shared_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
