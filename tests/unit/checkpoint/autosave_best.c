/* SPDX-License-Identifier: Apache-2.0
 *
 * A measured value belongs to the variables that are kept, and the best variables are kept.
 */
#include <stdlib.h>
#include <string.h>

#include "checkpoint/store/best.h"
#include "lib/autosaves.h"

/* The loss of the variables after step `step`; it is least after step 100. */
static double loss_of(int64_t step)
{
    return step < 100 ? (double)(100 - step) : (double)(step - 100);
}

static void remove_store(void)
{
    char command[STORES_PATH_BYTES + 32];
    snprintf(command, sizeof command, "rm -rf %s", path);
    assert_int_equal(system(command), 0);
}

static double loss_in(struct store *store, int64_t step)
{
    struct ckpt_manifest m;
    struct error err = ERROR_INIT;
    double loss = -1;
    if (store_manifest(store, step, &m, &err))
        fail_msg("%s", err.text);
    ckpt_manifest_find_scalar(&m, "loss", &loss);
    ckpt_manifest_release(&m);
    return loss;
}

/* Many steps, each of which measures the variables before or after it, while the disk takes longer
 * than all of them: the best variables are kept, with their own loss, and --keep spares them. */
static void the_best_waits_until_it_is_written(void **state)
{
    (void)state;
    for (int before = 0; before < 2; before++) {
        struct variable_store *variables = variable_store_new();
        struct variable *v[VARIABLES];
        struct error err = ERROR_INIT;
        manifest_vec all;
        int64_t best;
        make_variables(variables, v);
        write_all(v, 0);
        struct autosave *a = open_autosave(&(struct autosave_options){.best = "loss",
                                                                      .best_is_low = true,
                                                                      .every = {.steps = 10},
                                                                      .keep = 1,
                                                                      .bytes_per_second = 20e6},
                                           variables);
        autosave_set_blob(a, BEST_BLOB, "loss:min", 8);
        autosave_begin(a);
        for (int64_t step = 1; step <= 300; step++) {
            write_all(v, step);
            autosave_set_scalar(a, "loss", loss_of(before ? step - 1 : step), before);
            autosave_step(a, step, true);
        }
        assert_int_equal(autosave_finish(a, 300, &err), 0);
        autosave_close(a);
        struct store *store = stores_open(path, false);
        assert_int_equal(store_named(store, "best", &best, &err), 0);
        assert_int_equal(best, 100);
        assert_true(loss_in(store, 100) == 0);
        assert_int_equal(store_manifests(store, &all, NULL, &err), 0);
        assert_int_equal(all.n, 2); /* the best, and the newest */
        assert_int_equal(all.items[1].step, 300);
        assert_true(loss_in(store, 300) == (before ? -1 : 200)); /* before: nothing measured it */
        manifests_release(&all);
        struct checkpoint *c;
        struct tensor t;
        assert_int_equal(checkpoint_open(store, CHECKPOINT_BEST, &c, NULL, &err), 0);
        assert_int_equal(checkpoint_read(c, 0, &t, &err), 0);
        check_value(&t, 100);
        tensor_release(&t);
        checkpoint_close(c);
        store_close(store);
        variable_store_free(variables);
        remove_store();
    }
}

/* A save that is due is written at once, and gets its scalars later. */
static void scalars_are_of_the_variables_that_are_saved(void **state)
{
    struct variable_store *variables = variable_store_new();
    struct variable *v[VARIABLES];
    struct error err = ERROR_INIT;
    manifest_vec all;
    (void)state;
    make_variables(variables, v);
    write_all(v, 0);
    struct autosave *a =
        open_autosave(&(struct autosave_options){.every = {.steps = 10}}, variables);
    for (int64_t step = 1; step <= 95; step++) {
        write_all(v, step);
        autosave_set_scalar(a, "loss", loss_of(step - 1), true);
        autosave_set_scalar(a, "accuracy", (double)step, false);
        autosave_step(a, step, true);
        while (autosave_is_saving(a))
            usleep(1000);
    }
    assert_int_equal(autosave_finish(a, 95, &err), 0);
    autosave_close(a);
    struct store *store = stores_open(path, false);
    assert_int_equal(store_manifests(store, &all, NULL, &err), 0);
    assert_int_equal(all.n, 10);
    for (size_t i = 0; i < all.n; i++) {
        double accuracy;
        int64_t step = all.items[i].step;
        assert_true(ckpt_manifest_find_scalar(&all.items[i], "accuracy", &accuracy));
        assert_true(accuracy == (double)step);
        assert_true(loss_in(store, step) == (step == 95 ? -1 : loss_of(step)));
    }
    manifests_release(&all);
    store_close(store);
    variable_store_free(variables);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_best_waits_until_it_is_written, setup, teardown),
        cmocka_unit_test_setup_teardown(scalars_are_of_the_variables_that_are_saved, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
