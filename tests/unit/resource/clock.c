/* SPDX-License-Identifier: Apache-2.0
 *
 * Clocks and aggregators as resources: what they decide, count, say, and keep over a restart.
 */
#include "resource/clock.h"
#include "resource/aggregator.h"
#include "resource/kinds.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/vec.h"
#include "lib/unit.h"

struct waiter {
    struct clock_waiter waiter; /* first */
    atomic_int answers;
    struct clock_result result;
    struct error failure;
};

static void done(struct clock_waiter *waiter, const struct clock_result *result,
                 const struct error *failure)
{
    struct waiter *w = (struct waiter *)waiter;
    if (failure)
        w->failure = *failure;
    else
        w->result = *result;
    atomic_fetch_add(&w->answers, 1);
}

static struct waiter new_waiter(void)
{
    return (struct waiter){.waiter.done = done};
}

struct bench {
    struct variable_store *store;
    struct clock *clock;
};

static void bench_open(struct bench *b, const char *policy, int workers)
{
    struct error err = ERROR_INIT;
    b->store = variable_store_new();
    b->clock = resource_get(b->store, &clock_kind, "default", "train");
    assert_int_equal(clock_configure(b->clock, policy, workers, &err), 0);
}

static void bench_close(struct bench *b)
{
    variable_store_free(b->store);
}

static struct waiter join(struct bench *b, int64_t worker, uint64_t incarnation)
{
    struct waiter w = new_waiter();
    clock_join(b->clock, &(struct push_id){worker, incarnation, 0}, &w.waiter);
    assert_int_equal(w.answers, 1);
    return w;
}

static void push(struct bench *b, struct push_id id, int64_t version, struct waiter *w)
{
    *w = new_waiter();
    clock_push(b->clock, &id, version, &w->waiter);
}

/* Hands out a round, and returns its members as digits: worker and step of each. */
static int64_t apply_round(struct bench *b)
{
    struct waiter w = new_waiter();
    struct error err = ERROR_INIT;
    int64_t digits = 0;
    clock_round(b->clock, &w.waiter);
    assert_int_equal(w.answers, 1);
    assert_int_equal(w.failure.code, 0);
    for (int i = 0; i < w.result.members.n; i++)
        digits = digits * 100 + w.result.members.ids[i].worker * 10 + w.result.members.ids[i].seq;
    assert_int_equal(clock_advance(b->clock, w.result.version, &err), 0);
    return digits;
}

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
    assert_int_equal(round.answers, 0); /* 1 is expected and has not come */
    join(&b, 1, 11);
    push(&b, (struct push_id){1, 11, 1}, 0, &w[1]);
    assert_int_equal(round.answers, 1);
    assert_int_equal(round.result.version, 1);
    assert_int_equal(round.result.members.n, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(round.result.members.ids[i].worker, i); /* by rank, as they came or not */
        assert_int_equal(w[i].answers, 0);
    }
    assert_int_equal(clock_advance(b.clock, 2, &err), ERR_DATA);
    assert_int_equal(clock_advance(b.clock, 1, &err), 0);
    for (int i = 0; i < 3; i++)
        assert_true(w[i].answers == 1 && w[i].result.counted && w[i].result.version == 1);
    clock_leave(b.clock, &(struct push_id){1, 11, 0}); /* nobody waits for it any more */
    push(&b, (struct push_id){0, 10, 2}, 1, &w[0]);
    push(&b, (struct push_id){2, 12, 2}, 1, &w[2]);
    assert_int_equal(apply_round(&b), 222);
    bench_close(&b);
}

static void late_pushes_are_counted_as_such(void **state)
{
    struct bench b;
    struct waiter w[3];
    struct clock_worker seen[3];
    (void)state;
    bench_open(&b, "sync,backup=1", 3);
    for (int i = 0; i < 3; i++)
        join(&b, i, 1);
    push(&b, (struct push_id){2, 1, 1}, 0, &w[2]);
    push(&b, (struct push_id){1, 1, 1}, 0, &w[1]);
    push(&b, (struct push_id){0, 1, 1}, 0, &w[0]); /* the third of two */
    assert_int_equal(apply_round(&b), 1121);
    assert_true(w[0].answers == 1 && !w[0].result.counted && w[0].result.version == 1);
    assert_true(w[1].result.counted && w[2].result.counted);
    push(&b, (struct push_id){1, 1, 2}, 0, &w[1]); /* of a version that is gone */
    assert_true(w[1].answers == 1 && !w[1].result.counted);
    push(&b, (struct push_id){2, 1, 1}, 1, &w[2]); /* counted already */
    assert_true(w[2].answers == 1 && w[2].result.counted);
    assert_int_equal(clock_workers(b.clock, seen, 3), 3);
    assert_true(seen[0].late == 1 && seen[0].counted == 0 && seen[0].behind == 1);
    assert_true(seen[1].late == 1 && seen[1].counted == 1 && seen[1].pushed == 2);
    assert_true(seen[2].duplicate == 1 && seen[2].counted == 1 && seen[2].pushed == 1);
    bench_close(&b);
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
    assert_int_equal(w.answers, 1);
    assert_string_equal(w.failure.text, "worker:0, incarnation 5: replaced by incarnation 6");
    assert_int_equal(second.answers, 0); /* what was pushed is to be decided first */
    assert_int_equal(apply_round(&b), 1);
    assert_true(second.answers == 1 && second.result.seq == 1 && second.result.version == 1);
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
    for (int i = 0; i < 1000 && !w.answers; i++)
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
    assert_int_equal(round.answers, 1);
    error_set(&reason, ERR_UNAVAILABLE, "ps:1 is gone");
    clock_fail(b.clock, &reason);
    assert_string_equal(w.failure.text, "ps:1 is gone");
    round = new_waiter();
    clock_round(b.clock, &round.waiter); /* half an update may be in the variables */
    assert_string_equal(round.failure.text, "ps:1 is gone");
    bench_close(&b);
}

/* ---- over a restart ---- */

struct part {
    char *container, *name;
    struct tensor value;
};

struct store {
    struct resource_writer writer; /* first */
    VEC(struct part) parts;
};

static int put(struct resource_writer *writer, const char *container, const char *name,
               const struct tensor *value, struct error *err)
{
    struct store *store = (struct store *)writer;
    struct part part = {mem_strdup(container), mem_strdup(name), TENSOR_INIT};
    assert_true(resource_is_part(name));
    int code = tensor_copy(&part.value, value, err);
    vec_push(&store->parts, part);
    return code;
}

static void save_all(struct bench *b, struct store *store)
{
    struct resource_marks marks;
    struct error err = ERROR_INIT;
    resource_marks_place(b->store, &marks);
    assert_int_equal(resource_marks_save(&marks, &store->writer, &err), 0);
    resource_marks_release(&marks);
}

static void stage(struct bench *b, struct push_id id, float value)
{
    struct tensor t = TENSOR_INIT;
    struct error err = ERROR_INIT;
    assert_int_equal(tensor_alloc(&t, FLOAT32, &SHAPE_SCALAR, &err), 0);
    tensor_set_float64(&t, 0, (double)value);
    aggregator_push(resource_get(b->store, &aggregator_kind, "default", "w"), &id, &t, 1);
    tensor_release(&t);
}

static void take_and_check(struct bench *b, struct push_id id, float value)
{
    struct aggregator *a = resource_get(b->store, &aggregator_kind, "default", "w");
    struct push_list members = {&id, 1}, none = {NULL, 0};
    struct error err = ERROR_INIT;
    struct staged staged;
    int64_t bytes, pushes;
    assert_int_equal(aggregator_take(a, members, none, 1, &staged, &err), 0);
    assert_true(tensor_get_float64(&staged.values[0], 0) == (double)value);
    staged_release(&staged);
    assert_int_equal(aggregator_take(a, members, none, 1, &staged, &err), ERR_DATA);
    aggregator_size(a, &bytes, &pushes);
    assert_true(bytes == 0 && pushes == 0);
}

/* What was saved, into a store that has nothing yet or a clock. */
static void load_all(struct store *store, struct variable_store *into)
{
    struct error err = ERROR_INIT;
    for (size_t i = 0; i < store->parts.n; i++) {
        struct part *part = &store->parts.items[i];
        if (resource_restore(into, resource_kinds, part->container, part->name, &part->value, &err))
            fail_msg("%s", err.text);
        tensor_release(&part->value);
        mem_free(part->container);
        mem_free(part->name);
    }
    vec_release(&store->parts);
}

static void what_was_pushed_survives_a_restart(void **state)
{
    struct bench before, after;
    struct waiter w[2], again = new_waiter();
    struct store store = {.writer = {put}};
    struct error err = ERROR_INIT;
    struct push_id id = {1, 8, 2};
    (void)state;
    bench_open(&before, "sync", 2);
    for (int i = 0; i < 2; i++) {
        join(&before, i, (uint64_t)(7 + i));
        push(&before, (struct push_id){i, (uint64_t)(7 + i), 1}, 0, &w[i]);
    }
    assert_int_equal(apply_round(&before), 111);
    stage(&before, id, 2.5F);
    push(&before, id, 1, &w[1]); /* waits for 0 when all is saved */
    save_all(&before, &store);
    bench_close(&before);

    bench_open(&after, "sync", 2);
    load_all(&store, after.store);
    assert_int_equal(clock_version(after.clock), 1);
    again = join(&after, 0, 17);
    assert_true(again.result.seq == 1 && again.result.version == 1);
    again = new_waiter();
    clock_join(after.clock, &(struct push_id){1, 18, 0}, &again.waiter);
    assert_int_equal(again.answers, 0); /* its push from before is to be decided */
    push(&after, (struct push_id){0, 17, 2}, 1, &w[0]);
    assert_int_equal(apply_round(&after), 212);
    assert_true(again.answers == 1 && again.result.seq == 2);
    take_and_check(&after, id, 2.5F);
    unit_assert_error(resource_restore(after.store, resource_kinds, "default", "queue:q/x",
                                       &(struct tensor){0}, &err),
                      err, ERR_DATA, "'queue:q/x' is no part of a resource");
    bench_close(&after);
}

/* A job of two workers ends, and goes on with `workers`: how many of them a round has. */
static int members_after_the_end(int workers)
{
    struct bench before, after = {.store = variable_store_new()};
    struct waiter w[2], round = new_waiter();
    struct store store = {.writer = {put}};
    struct error err = ERROR_INIT;
    bench_open(&before, "sync", 2);
    for (int i = 0; i < 2; i++) {
        join(&before, i, (uint64_t)(7 + i));
        push(&before, (struct push_id){i, (uint64_t)(7 + i), 1}, 0, &w[i]);
    }
    apply_round(&before);
    for (int i = 0; i < 2; i++)
        clock_leave(before.clock, &(struct push_id){i, (uint64_t)(7 + i), 0});
    save_all(&before, &store);
    bench_close(&before);

    load_all(&store, after.store); /* before there is a graph */
    after.clock = resource_get(after.store, &clock_kind, "default", "train");
    assert_int_equal(clock_configure(after.clock, "sync", workers, &err), 0);
    join(&after, 0, 17);
    push(&after, (struct push_id){0, 17, 2}, 1, &w[0]);
    clock_round(after.clock, &round.waiter);
    if (workers == 2) {
        assert_int_equal(round.answers, 0); /* 1 had left, and is expected back */
        join(&after, 1, 18);
        push(&after, (struct push_id){1, 18, 2}, 1, &w[1]);
    }
    assert_int_equal(round.answers, 1);
    int members = round.result.members.n;
    assert_int_equal(clock_advance(after.clock, 2, &err), 0);
    bench_close(&after);
    return members;
}

static void a_job_that_has_ended_goes_on_with_all_workers(void **state)
{
    (void)state;
    assert_int_equal(members_after_the_end(2), 2);
    assert_int_equal(members_after_the_end(1), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(synchronous_rounds_have_everyone),
        cmocka_unit_test(late_pushes_are_counted_as_such),
        cmocka_unit_test(an_older_life_is_refused),
        cmocka_unit_test(deadlines_name_who_is_missing),
        cmocka_unit_test(a_failure_reaches_all),
        cmocka_unit_test(what_was_pushed_survives_a_restart),
        cmocka_unit_test(a_job_that_has_ended_goes_on_with_all_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
