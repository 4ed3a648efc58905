/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps do not wait for ever for the copies of an earlier step's variables. In this program the
 * thread that makes the copies stalls as it begins.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/autosaves.h"

#define FAILPOINTS "save.marked:1:delay=1500"

static void a_best_that_cannot_be_taken_is_told(void **state)
{
    struct variable_store *variables = variable_store_new();
    struct variable *v[VARIABLES];
    struct autosave_counts counts;
    struct error err = ERROR_INIT;
    struct store *store;
    manifest_vec all;
    (void)state;
    make_variables(variables, v);
    struct autosave *a = open_autosave(
        &(struct autosave_options){
            .best = "loss", .best_is_low = true, .every = {.steps = 1}, .copy_wait = 0.05},
        variables);
    autosave_begin(a);
    write_all(v, 1);
    autosave_step(a, 1, true); /* its thread stalls */
    write_all(v, 2);
    autosave_set_scalar(a, "loss", 5, false);
    double began = time_now();
    autosave_step(a, 2, true);
    assert_true(time_now() - began < 1);
    assert_int_equal(said, 1);
    autosave_count(a, &counts);
    assert_int_equal(counts.failed, 1);
    write_all(v, 3);
    autosave_drop_scalar(a, "loss");
    assert_int_equal(autosave_finish(a, 3, &err), 0);
    autosave_close(a);
    if (store_open(path, NULL, &store, &err) || store_manifests(store, &all, &err, &err))
        fail_msg("%s", err.text);
    assert_int_equal(all.n, 2);
    assert_int_equal(all.items[0].step, 1);
    assert_int_equal(all.items[1].step, 3);
    manifests_release(&all);
    store_close(store);
    variable_store_free(variables);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_best_that_cannot_be_taken_is_told, setup, teardown),
    };
    (void)argc;
    if (!getenv("TF_FAILPOINTS")) { /* failpoints are read before main */
        setenv("TF_FAILPOINTS", FAILPOINTS, 1);
        execv("/proc/self/exe", argv);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
