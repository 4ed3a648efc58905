/* SPDX-License-Identifier: Apache-2.0
 *
 * Snapshots: variables and resources as they were when the snapshot was taken, whatever came later.
 */
#include "checkpoint/variables/cut.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "lib/unit.h"
#include "resource/aggregator.h"
#include "resource/clock.h"
#include "resource/kinds.h"

#define SIZE 1000 /* int64 elements of every value */

struct waiter {
    struct clock_waiter waiter; /* must be first */
    struct clock_result result;
    int replies;
};

static void answered(struct clock_waiter *waiter, const struct clock_result *result,
                     const struct error *failure)
{
    struct waiter *w = (struct waiter *)waiter;
    assert_null(failure);
    w->result = *result;
    w->replies++;
}

struct job {
    struct variable_store *store;
    struct variable *variable;
    struct clock *clock;
    struct aggregator *aggregator;
    struct waiter joins[2], pushes[2]; /* by worker */
};

static void open_job(struct job *job)
{
    struct variable like = {
        .container = "default", .name = "v", .type = INT64, .shape = shape_vector(SIZE)};
    struct error err = ERROR_INIT;
    *job = (struct job){.store = variable_store_new()};
    assert_int_equal(variable_store_get(job->store, &like, &job->variable, &err), 0);
    job->aggregator = resource_get(job->store, &aggregator_kind, "default", "v");
    job->clock = resource_get(job->store, &clock_kind, "default", "train");
    assert_int_equal(clock_configure(job->clock, "sync", 2, &err), 0);
    for (int i = 0; i < 2; i++) {
        job->joins[i].waiter.done = job->pushes[i].waiter.done = answered;
        clock_join(job->clock, &(struct push_id){i, 1, 0}, &job->joins[i].waiter);
    }
}

static void close_job(struct job *job)
{
    variable_store_free(job->store);
}

/* A value whose elements all equal the number. */
static struct tensor filled(int64_t number)
{
    struct tensor value = TENSOR_INIT;
    struct error err = ERROR_INIT;
    const struct shape shape = shape_vector(SIZE);
    assert_int_equal(tensor_alloc(&value, INT64, &shape, &err), 0);
    for (int i = 0; i < SIZE; i++)
        ((int64_t *)value.data)[i] = number;
    return value;
}

static void assert_filled(const struct tensor *value, int64_t number)
{
    assert_int_equal(tensor_count(value), SIZE);
    for (int i = 0; i < SIZE; i++)
        assert_int_equal(((const int64_t *)value->data)[i], number);
}

static void assign(struct job *job, int64_t number)
{
    struct error err = ERROR_INIT;
    struct tensor value = filled(number);
    variable_lock_wait(job->variable, true);
    assert_int_equal(variable_put_in(job->variable, &value, &err), 0);
    variable_unlock(job->variable, true);
    tensor_release(&value);
}

/* Stages two values under the step's number; returns the memory of one. */
static const void *stage(struct job *job, int worker, int64_t step, int64_t number)
{
    struct tensor value = filled(number);
    const struct tensor both[] = {value, value};
    const void *data = value.data;
    aggregator_push(job->aggregator, &(struct push_id){worker, 1, step}, both, 2);
    tensor_release(&value);
    return data;
}

static void push(struct job *job, int worker, int64_t step)
{
    job->pushes[worker].replies = 0;
    clock_push(job->clock, &(struct push_id){worker, 1, step}, clock_version(job->clock),
               &job->pushes[worker].waiter);
}

/* Does what a shard does: takes the next round and makes its values the variable's. */
static void update(struct job *job, int64_t number)
{
    struct waiter round = {.waiter.done = answered};
    struct staged_push staged[2];
    struct error err = ERROR_INIT;
    clock_round(job->clock, &round.waiter);
    assert_int_equal(round.replies, 1);
    assert_int_equal(round.result.members.n, 2);
    assert_int_equal(aggregator_take(job->aggregator, round.result.members, round.result.dropped, 2,
                                     staged, &err),
                     0);
    for (int i = 0; i < 2; i++)
        staged_release(&staged[i]);
    assign(job, number);
    assert_int_equal(clock_advance(job->clock, round.result.version, &err), 0);
}

static void take(struct job *job, struct cut *cut)
{
    variable_vec all = VEC_INIT;
    vec_push(&all, job->variable);
    cut_take(job->store, &all, cut);
    vec_release(&all);
}

static const struct tensor *find(const struct cut *cut, const char *name)
{
    for (size_t i = 0; i < cut->tensors.n; i++)
        if (!strcmp(cut->tensors.items[i].name, name))
            return &cut->tensors.items[i].value;
    fail_msg("there is no %s", name);
    return NULL;
}

/* Restores as after a restart. */
static void restore(const struct cut *cut, struct job *job)
{
    struct error err = ERROR_INIT;
    *job = (struct job){.store = variable_store_new()};
    for (size_t i = cut->snapshots.n; i < cut->tensors.n; i++) {
        const struct variable_record *part = &cut->tensors.items[i];
        if (resource_restore(job->store, resource_kinds, part->container, part->name, &part->value,
                             &err))
            fail_msg("%s", err.text);
    }
    job->aggregator = resource_get(job->store, &aggregator_kind, "default", "v");
    job->clock = resource_get(job->store, &clock_kind, "default", "train");
}

/* Then version is 1; worker 1 has pushed its second step, worker 0 has not. */
static void run_to_the_cut(struct job *job)
{
    open_job(job);
    assign(job, 10);
    for (int i = 0; i < 2; i++) {
        stage(job, i, 1, 100 + i);
        push(job, i, 1);
    }
    update(job, 11);
    stage(job, 1, 2, 201);
    push(job, 1, 2);
}

/* Ends rounds and begins others, so that everything changes. */
static void run_on(struct job *job)
{
    stage(job, 0, 2, 200);
    push(job, 0, 2);
    update(job, 12);
    for (int i = 0; i < 2; i++)
        stage(job, i, 3, 300 + i);
    push(job, 0, 3);
}

static void check_restored(const struct cut *cut)
{
    struct job after;
    struct staged_push staged;
    struct error err = ERROR_INIT;
    struct clock_member workers[2];
    struct resource_size size;
    restore(cut, &after);
    assert_int_equal(clock_version(after.clock), 1);
    assert_int_equal(clock_workers(after.clock, workers, 2), 2);
    assert_int_equal(workers[0].pushed, 1);
    assert_int_equal(workers[1].pushed, 2);
    aggregator_kind.size(after.aggregator, &size);
    assert_int_equal(size.items, 1);
    assert_int_equal(size.bytes, 2 * SIZE * sizeof(int64_t));
    const struct push_list members = {&(struct push_id){1, 1, 2}, 1}, none = {NULL, 0};
    assert_int_equal(aggregator_take(after.aggregator, members, none, 2, &staged, &err), 0);
    assert_filled(&staged.values[0], 201);
    assert_filled(&staged.values[1], 201);
    staged_release(&staged);
    close_job(&after);
}

static void what_comes_after_a_cut_is_not_in_it(void **unused)
{
    struct job job;
    struct cut cut;
    struct error err = ERROR_INIT;
    (void)unused;
    run_to_the_cut(&job);
    take(&job, &cut);
    run_on(&job);
    assert_int_equal(cut_collect(&cut, &err), 0);
    assert_filled(find(&cut, "v"), 11);
    check_restored(&cut);
    cut_release(&cut);
    close_job(&job);
}

static void values_are_shared_not_copied(void **unused)
{
    struct job job;
    struct cut cut;
    struct error err = ERROR_INIT;
    (void)unused;
    open_job(&job);
    assign(&job, 10);
    const void *memory = stage(&job, 0, 1, 100);
    take(&job, &cut);
    assert_int_equal(cut_collect(&cut, &err), 0);
    assert_ptr_equal(find(&cut, "aggregator:v/push0.0")->data, memory);
    assert_ptr_equal(find(&cut, "aggregator:v/push0.1")->data, memory);
    assert_ptr_equal(find(&cut, "v")->data, job.variable->value.data);
    cut_release(&cut);
    close_job(&job);
}

static void a_cut_that_nobody_collects_gives_all_back(void **unused)
{
    struct job job;
    struct cut cut;
    (void)unused;
    run_to_the_cut(&job);
    take(&job, &cut);
    run_on(&job);
    cut_release(&cut); /* the leak checker finds what is left */
    close_job(&job);
}

/* ---- while others push ---- */

static atomic_bool enough;

static void *push_and_take(void *context)
{
    struct job *job = context;
    struct error err = ERROR_INIT;
    for (int64_t step = 1; !atomic_load(&enough); step++) {
        const struct push_list members = {&(struct push_id){0, 1, step}, 1}, none = {NULL, 0};
        struct staged_push staged;
        stage(job, 0, step, step);
        assert_int_equal(aggregator_take(job->aggregator, members, none, 2, &staged, &err), 0);
        staged_release(&staged);
    }
    return NULL;
}

/* A snapshot has all values of a push, or none. */
static void a_cut_has_whole_pushes(void **unused)
{
    struct job job;
    pthread_t thread;
    struct error err = ERROR_INIT;
    int seen = 0;
    (void)unused;
    open_job(&job);
    atomic_store(&enough, false);
    assert_int_equal(pthread_create(&thread, NULL, push_and_take, &job), 0);
    for (int i = 0; i < 100 || !seen; i++) { /* on busy cores the other may be kept waiting */
        struct cut cut;
        take(&job, &cut);
        assert_int_equal(cut_collect(&cut, &err), 0);
        const struct tensor *ids = find(&cut, "aggregator:v/ids");
        assert_true(ids->shape.dims[0] <= 1);
        if (ids->shape.dims[0]) {
            assert_filled(find(&cut, "aggregator:v/push0.0"), tensor_get_int64(ids, 2));
            assert_filled(find(&cut, "aggregator:v/push0.1"), tensor_get_int64(ids, 2));
            seen++;
        }
        cut_release(&cut);
    }
    atomic_store(&enough, true);
    pthread_join(thread, NULL);
    close_job(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_after_a_cut_is_not_in_it),
        cmocka_unit_test(values_are_shared_not_copied),
        cmocka_unit_test(a_cut_that_nobody_collects_gives_all_back),
        cmocka_unit_test(a_cut_has_whole_pushes),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
