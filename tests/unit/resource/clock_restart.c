/* SPDX-License-Identifier: Apache-2.0
 *
 * Clocks and aggregators across a restart: pushes that wait, and workers that left, when everything
 * is saved.
 */
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "lib/clock_bench.h"
#include "resource/aggregator.h"
#include "resource/kinds.h"

struct part {
    char *container, *name;
    struct tensor value;
};

struct store {
    struct resource_sink sink; /* must be first */
    VEC(struct part) parts;
};

static int put(struct resource_sink *sink, const char *container, const char *name,
               const struct tensor *value, struct error *err)
{
    struct store *store = (struct store *)sink;
    struct part part = {mem_strdup(container), mem_strdup(name), TENSOR_INIT};
    assert_true(resource_is_part(name));
    int code = tensor_copy(&part.value, value, err);
    vec_push(&store->parts, part);
    return code;
}

static void save_all(struct bench *b, struct store *store)
{
    struct resource_snapshots snapshots;
    struct error err = ERROR_INIT;
    resource_snapshots_place(b->store, &snapshots);
    assert_int_equal(resource_snapshots_save(&snapshots, &store->sink, &err), 0);
    resource_snapshots_release(&snapshots);
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
    struct staged_push staged;
    struct resource_size size;
    assert_int_equal(aggregator_take(a, members, none, 1, &staged, &err), 0);
    assert_true(tensor_get_float64(&staged.values[0], 0) == (double)value);
    staged_release(&staged);
    assert_int_equal(aggregator_take(a, members, none, 1, &staged, &err), ERR_DATA);
    aggregator_kind.size(a, &size);
    assert_true(size.bytes == 0 && size.items == 0);
}

/* Loads what was saved into a store that is empty or has a clock. */
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
    struct store store = {.sink = {put, NULL}};
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
    assert_int_equal(again.replies, 0); /* its push from before is to be decided */
    push(&after, (struct push_id){0, 17, 2}, 1, &w[0]);
    assert_int_equal(apply_round(&after), 212);
    assert_true(again.replies == 1 && again.result.seq == 2);
    take_and_check(&after, id, 2.5F);
    unit_assert_error(resource_restore(after.store, resource_kinds, "default", "queue:q/x",
                                       &(struct tensor){0}, &err),
                      err, ERR_DATA, "'queue:q/x' is no part of a resource");
    bench_close(&after);
}

/* A worker comes back whose second push was waiting: it pushes again, and the push counts. */
static void push_second_again(struct bench *b, uint64_t incarnation)
{
    struct waiter w = join(b, 0, incarnation);
    struct clock_member seen;
    assert_true(w.result.seq == 1 && w.result.version == 1 && w.result.counted);
    clock_stop_at(b->clock, 0);
    push(b, (struct push_id){0, incarnation, 2}, 1, &w);
    assert_int_equal(apply_round(b), 2);
    assert_true(w.replies == 1 && w.result.counted && w.result.version == 2);
    assert_int_equal(clock_workers(b->clock, &seen, 1), 1);
    assert_true(seen.counted == 2 && seen.duplicate == 0);
}

/* A worker whose steps drive the rounds dies while the clock is stopped for a checkpoint, or all
 * die once it is made: no other worker would begin the round that its push waits for. */
static void a_worker_that_drives_pushes_again(void **state)
{
    struct bench before, after;
    struct waiter w;
    struct store store = {.sink = {put, NULL}};
    (void)state;
    bench_open(&before, "sync", 1);
    clock_drive_by_worker(before.clock);
    join(&before, 0, 1);
    push(&before, (struct push_id){0, 1, 1}, 0, &w);
    assert_int_equal(apply_round(&before), 1);
    clock_stop_at(before.clock, 1);
    push(&before, (struct push_id){0, 1, 2}, 1, &w);
    save_all(&before, &store);
    push_second_again(&before, 2);
    assert_string_equal(w.failure.text, "worker:0, incarnation 1: replaced by incarnation 2");
    bench_close(&before);

    bench_open(&after, "sync", 1);
    load_all(&store, after.store);
    clock_drive_by_worker(after.clock);
    push_second_again(&after, 1); /* the first incarnation of a resumed job */
    bench_close(&after);
}

/* A job of two workers ends, and resumes with `workers`: returns how many of them make a round. */
static int members_after_the_end(int workers)
{
    struct bench before, after = {.store = variable_store_new()};
    struct waiter w[2], round = new_waiter();
    struct store store = {.sink = {put, NULL}};
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
        assert_int_equal(round.replies, 0); /* 1 had left, and is expected back */
        join(&after, 1, 18);
        push(&after, (struct push_id){1, 18, 2}, 1, &w[1]);
    }
    assert_int_equal(round.replies, 1);
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
        cmocka_unit_test(what_was_pushed_survives_a_restart),
        cmocka_unit_test(a_worker_that_drives_pushes_again),
        cmocka_unit_test(a_job_that_has_ended_goes_on_with_all_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
