/* SPDX-License-Identifier: Apache-2.0
 *
 * Saving while steps go on: a save holds the variables of one moment, the one that was asked for.
 */
#include <pthread.h>
#include <string.h>

#include "checkpoint/variables/restore.h"
#include "exec/state/resource.h"
#include "exec/state/variable.h"
#include "graph/text.h"
#include "lib/autosaves.h"
#include "ops/ops.h"
#include "resource/aggregator.h"

/* ---- snapshots ---- */

static void place_snapshots(struct variable *variables[VARIABLES],
                            struct variable_snapshots *snapshots)
{
    const variable_vec all = {variables, VARIABLES, VARIABLES};
    variable_snapshots_place(&all, snapshots);
}

static void *collect(void *snapshots)
{
    struct error *err = calloc(1, sizeof *err);
    variable_snapshots_collect(snapshots, err);
    return err;
}

static void snapshots_keep_what_is_written_over(void **state)
{
    struct variable_store *store = variable_store_new();
    struct variable *variables[VARIABLES];
    (void)state;
    make_variables(store, variables);
    for (int64_t step = 1; step < 20; step++) {
        struct variable_snapshots snapshots;
        pthread_t thread;
        void *err;
        write_all(variables, step);
        place_snapshots(variables, &snapshots);
        assert_int_equal(snapshots.n, VARIABLES);
        assert_int_equal(pthread_create(&thread, NULL, collect, &snapshots), 0);
        write_all(variables, 1000 + step); /* while the snapshots are collected */
        write_all(variables, 2000 + step);
        pthread_join(thread, &err);
        assert_int_equal(((struct error *)err)->code, 0);
        free(err);
        for (int i = 0; i < VARIABLES; i++) {
            check_value(&snapshots.items[i].value, step);
            assert_int_equal(snapshots.items[i].updates, 3 * step - 2);
            assert_null(variables[i]->snapshot);
        }
        variable_snapshots_release(&snapshots);
    }
    variable_store_free(store);
}

static void snapshots_that_nobody_collects_are_taken_away(void **state)
{
    struct variable_store *store = variable_store_new();
    struct variable *variables[VARIABLES];
    struct variable_snapshots snapshots;
    (void)state;
    make_variables(store, variables);
    place_snapshots(variables, &snapshots); /* no variable has a value yet */
    assert_int_equal(snapshots.n, 0);
    variable_snapshots_release(&snapshots);
    write_all(variables, 1);
    place_snapshots(variables, &snapshots);
    variable_snapshots_release(&snapshots);
    write_all(variables, 2);
    variable_store_free(store);
}

/* ---- saves ---- */

static void check_checkpoint(struct store *store, int64_t step)
{
    struct checkpoint *c;
    struct error err = ERROR_INIT;
    double value;
    assert_int_equal(checkpoint_open(store, step, &c, NULL, &err), 0);
    assert_int_equal(c->entries.n, VARIABLES);
    for (int i = 0; i < VARIABLES; i++) {
        struct tensor t;
        assert_int_equal(checkpoint_read(c, i, &t, &err), 0);
        check_value(&t, step);
        assert_int_equal(c->entries.items[i].tensor->updates, step);
        tensor_release(&t);
    }
    assert_true(ckpt_manifest_find_scalar(&c->manifest, "loss", &value));
    assert_true(value == 1.0 / (double)step);
    checkpoint_close(c);
}

static void run_steps(struct autosave *a, struct variable *variables[VARIABLES], int64_t first,
                      int64_t last)
{
    for (int64_t step = first; step <= last; step++) {
        write_all(variables, step);
        autosave_set_scalar(a, "loss", 1.0 / (double)step, false);
        autosave_step(a, step, true);
    }
}

static void every_save_is_of_one_step(void **state)
{
    struct variable_store *variables = variable_store_new();
    struct variable *v[VARIABLES];
    struct error err = ERROR_INIT;
    manifest_vec all;
    struct autosave_counts counts;
    (void)state;
    make_variables(variables, v);
    struct autosave *a =
        open_autosave(&(struct autosave_options){.every = {.steps = 7}}, variables);
    run_steps(a, v, 1, 200);
    assert_int_equal(autosave_finish(a, 200, &err), 0);
    autosave_count(a, &counts);
    int64_t begun = counts.begun;
    /* each save that was due was begun or left out; the final save may stand for the last of them
     */
    assert_in_range(begun + counts.left_out, 200 / 7 - 1, 200 / 7);
    assert_int_equal(counts.failed, 0);
    autosave_close(a);
    assert_int_equal(said, 0);
    struct store *store = stores_open(path, false);
    assert_int_equal(store_manifests(store, &all, NULL, &err), 0);
    assert_in_range(all.n, begun, begun + 1);
    assert_in_range(begun, 1, 200 / 7);
    for (size_t i = 0; i < all.n; i++)
        check_checkpoint(store, all.items[i].step);
    assert_int_equal(all.items[0].step, 7);
    assert_int_equal(all.items[all.n - 1].step, 200);
    manifests_release(&all);
    store_close(store);
    variable_store_free(variables);
}

/* Steps that change nothing take no time compared with a save. */
static void pass_steps(struct autosave *a, int64_t first, int64_t last)
{
    for (int64_t step = first; step <= last; step++)
        autosave_step(a, step, true);
}

/* Only one save is under way at a time. */
static void what_is_due_meanwhile_is_counted(void **state)
{
    struct variable_store *variables = variable_store_new();
    struct variable *v[VARIABLES];
    struct error err = ERROR_INIT;
    struct autosave_counts counts;
    char folder[STORES_PATH_BYTES + 32];
    (void)state;
    make_variables(variables, v);
    write_all(v, 1);
    struct autosave *a = open_autosave(
        &(struct autosave_options){.every = {.steps = 1}, .bytes_per_second = 8e6}, variables);
    pass_steps(a, 1, 10);
    while (autosave_is_saving(a))
        usleep(1000);
    autosave_count(a, &counts);
    assert_int_equal(counts.begun, 1);
    pass_steps(a, 11, 11);
    autosave_count(a, &counts);
    assert_int_equal(counts.begun, 2);
    assert_int_equal(counts.left_out, 9);
    pass_steps(a, 12, 20);
    assert_int_equal(autosave_finish(a, 20, &err), 0);
    autosave_count(a, &counts);
    assert_int_equal(counts.left_out, 9 + 8);
    /* so are failures: the store is gone now */
    snprintf(folder, sizeof folder, "%s.away", path);
    assert_int_equal(rename(path, folder), 0);
    pass_steps(a, 21, 21);
    while (autosave_is_saving(a))
        usleep(1000);
    pass_steps(a, 22, 22);
    autosave_count(a, &counts);
    assert_int_equal(counts.failed, 1);
    assert_int_equal(said, 1);
    autosave_close(a);
    variable_store_free(variables);
}

static void the_best_is_saved_when_it_comes(void **state)
{
    static const double losses[] = {5, 3, 4, 2, 2, 9};
    struct variable_store *variables = variable_store_new();
    struct variable *v[VARIABLES];
    struct error err = ERROR_INIT;
    manifest_vec all;
    (void)state;
    make_variables(variables, v);
    const struct autosave_options options = {.best = "loss", .best_is_low = true};
    for (int again = 0; again < 2; again++) { /* the second time nothing is better than ever */
        struct autosave *a = open_autosave(&options, variables);
        for (int64_t step = 1; step <= 6; step++) {
            write_all(v, step);
            autosave_set_scalar(a, "loss", losses[step - 1], false);
            autosave_step(a, step, true);
            while (autosave_is_saving(a))
                usleep(1000);
        }
        autosave_close(a);
    }
    struct store *store = stores_open(path, false);
    assert_int_equal(store_manifests(store, &all, NULL, &err), 0);
    assert_int_equal(all.n, 3);
    assert_int_equal(all.items[0].step, 1);
    assert_int_equal(all.items[1].step, 2);
    assert_int_equal(all.items[2].step, 4);
    manifests_release(&all);
    store_close(store);
    variable_store_free(variables);
}

/* A checkpoint includes pushes that were not yet applied. */
static void resources_are_saved_and_restored(void **state)
{
    struct variable_store *variables = variable_store_new(), *back = variable_store_new();
    struct variable *v[VARIABLES];
    struct error err = ERROR_INIT;
    struct graph *graph;
    struct restore_result restored;
    int64_t value = 7;
    struct resource_size size;
    const struct push_id id = {.worker = 1, .incarnation = 2, .seq = 3};
    const struct tensor pushed = tensor_borrow(INT64, &SHAPE_SCALAR, &value);
    struct tensor copy;
    (void)state;
    make_variables(variables, v);
    write_all(v, 5);
    assert_int_equal(tensor_copy(&copy, &pushed, &err), 0);
    aggregator_push(resource_get(variables, &aggregator_kind, "default", "sum"), &id, &copy, 1);
    tensor_release(&copy);
    struct autosave *a = open_autosave(&(struct autosave_options){0}, variables);
    if (autosave_finish(a, 5, &err))
        fail_msg("%s", err.text);
    autosave_close(a);
    const char *text = "n = NoOp()\n";
    assert_int_equal(graph_parse_text(text, strlen(text), "test", ops_registry(), &graph, &err), 0);
    const struct restore_request request = {.graph = graph, .variables = back};
    struct store *store = stores_open(path, false);
    if (store_restore(store, CHECKPOINT_NEWEST, &request, &restored, &err))
        fail_msg("%s", err.text);
    assert_int_equal(restored.step, 5);
    aggregator_kind.size(resource_get(back, &aggregator_kind, "default", "sum"), &size);
    assert_int_equal(size.items, 1);
    assert_int_equal(size.bytes, sizeof value);
    store_close(store);
    graph_free(graph);
    variable_store_free(variables);
    variable_store_free(back);
}

static void intervals_are_steps_or_times(void **state)
{
    struct interval every;
    struct error err = ERROR_INIT;
    (void)state;
    assert_int_equal(interval_parse("100", &every, &err), 0);
    assert_int_equal(every.steps, 100);
    assert_true(every.seconds == 0);
    assert_int_equal(interval_parse("2m", &every, &err), 0);
    assert_true(every.seconds == 120);
    assert_int_equal(interval_parse("0", &every, &err), ERR_USAGE);
    assert_int_equal(interval_parse("-3s", &every, &err), ERR_USAGE);
    assert_int_equal(interval_parse("often", &every, &err), ERR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(snapshots_keep_what_is_written_over),
        cmocka_unit_test(snapshots_that_nobody_collects_are_taken_away),
        cmocka_unit_test_setup_teardown(every_save_is_of_one_step, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_due_meanwhile_is_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(the_best_is_saved_when_it_comes, setup, teardown),
        cmocka_unit_test_setup_teardown(resources_are_saved_and_restored, setup, teardown),
        cmocka_unit_test(intervals_are_steps_or_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
