/* SPDX-License-Identifier: Apache-2.0
 *
 * What a checkpoint keeps when its step is saved once more.
 */
#include <math.h>

#include "checkpoint/store/best.h"
#include "lib/stores.h"

static char path[STORES_PATH_BYTES + 16];

static int setup(void **state)
{
    struct error err = ERROR_INIT;
    *state = (void *)(uintptr_t)stores_folder();
    snprintf(path, sizeof path, "%s/store", (char *)*state);
    if (store_create(path, &err))
        fail_msg("%s", err.text);
    return 0;
}

static int teardown(void **state)
{
    stores_remove(*state);
    return 0;
}

/* Saves `value`, with shards if asked; returns the loss in the manifest, NaN if there is none. */
static double save_again(struct store *store, float value, const double *loss, bool sharded)
{
    const struct manifest_scalar scalar = {"loss", loss ? *loss : 0};
    static const char *const shards[] = {"ps-0"};
    const struct store_options options = {.write = true, .owner = "shard", .shard = "ps-0"};
    struct variable_record tensor = {.container = "default",
                                     .name = "v",
                                     .value = tensor_borrow(FLOAT32, &SHAPE_SCALAR, &value)};
    struct save_request part = {
        .step = 5, .producer = "", .tensors = &tensor, .n_tensors = 1, .is_part = sharded};
    struct save_request whole =
        sharded ? (struct save_request){.step = 5, .producer = "", .shards = shards, .n_shards = 1}
                : part;
    struct ckpt_manifest saved;
    struct error err = ERROR_INIT;
    double found = NAN;
    whole.scalars = &scalar;
    whole.n_scalars = loss != NULL;
    if ((sharded && store_save_at(path, &options, &part, &err)) ||
        store_save(store, &whole, &saved, &err))
        fail_msg("%s", err.text);
    ckpt_manifest_find_scalar(&saved, "loss", &found);
    ckpt_manifest_release(&saved);
    return found;
}

/* Otherwise a policy would forget the best once its run was resumed and preempted. */
static void the_same_step_saved_again_keeps_its_scalars(void **state)
{
    const double losses[] = {0.25, 0.5};
    struct store *store = stores_open(path, true);
    (void)state;
    for (int sharded = 0; sharded < 2; sharded++) {
        assert_true(save_again(store, 1, &losses[0], sharded) == 0.25);
        for (int i = 0; i < 2; i++) /* also when it is saved a third time */
            assert_true(save_again(store, 1, NULL, sharded) == 0.25);
        assert_true(save_again(store, 1, &losses[1], sharded) == 0.5);
        assert_true(isnan(save_again(store, 2, NULL, sharded))); /* of another value */
    }
    store_close(store);
}

/* A tag names the step, whatever the run saves under it later. */
static void the_same_step_saved_again_keeps_its_tags(void **state)
{
    struct store *store = stores_open(path, true);
    struct error err = ERROR_INIT;
    manifest_vec all;
    (void)state;
    for (int sharded = 0; sharded < 2; sharded++) {
        int64_t step = 0;
        save_again(store, 1, NULL, sharded);
        assert_int_equal(store_tag(store, 5, "good", &err), 0);
        assert_int_equal(store_tag(store, 5, "better", &err), 0);
        for (int i = 0; i < 3; i++)
            save_again(store, (float)i, NULL, sharded);
        assert_int_equal(store_named(store, "good", &step, &err), 0);
        assert_int_equal(step, 5);
        assert_int_equal(store_manifests(store, &all, NULL, &err), 0);
        assert_int_equal(all.n, 1);
        assert_int_equal(all.items[0].blobs.n, 2); /* each once */
        manifests_release(&all);
        assert_int_equal(store_tag(store, STORE_NO_STEP, "better", &err), 0);
        save_again(store, 7, NULL, sharded);
        assert_int_equal(store_named(store, "better", &step, &err), ERR_NOINPUT);
        error_clear(&err);
    }
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_same_step_saved_again_keeps_its_scalars, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_same_step_saved_again_keeps_its_tags, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
