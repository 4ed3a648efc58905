/* SPDX-License-Identifier: Apache-2.0
 *
 * Shards that resume: the first one chooses the checkpoint, and the others find exactly that one or
 * end. Shards that were restored separately neither train nor save together, and no shard saves to
 * a store that another job has taken over.
 */
#include "checkpoint/store/maintain.h"
#include "checkpoint/store/save.h"
#include "lib/shards.h"
#include "ps/verbs.h"

#define STORE "ckpt"

/* Saves two checkpoints, of which the second has 100 and 300 more; then ends the shards. */
static void save_twice(void)
{
    struct error err = ERROR_INIT;
    struct client client;
    int64_t step;
    shards_start(0);
    open_client(&client, NULL);
    assert_int_equal(verbs_save(&client, STORE, false, &step, &err), 0);
    put(&servers[0], "default", "v", 101);
    put(&servers[1], "default", "w", 303);
    assert_int_equal(verbs_save(&client, STORE, false, &step, &err), 0);
    assert_int_equal(step, 2);
    client_close(&client);
    for (int i = 0; i < SHARDS; i++) {
        end(&servers[i]);
        variable_store_free(servers[i].store);
        servers[i].store = NULL;
    }
}

/* Saves another checkpoint as a job that does not run here, so that the newest one changes. */
static void save_another(int64_t step)
{
    static int64_t value = 7;
    struct error err = ERROR_INIT;
    const struct shape scalar = {.rank = 0};
    const struct variable_record saved = {.container = "default",
                                          .name = "v",
                                          .updates = 1,
                                          .value = tensor_borrow(INT64, &scalar, &value)};
    const struct save_request request = {
        .step = step, .producer = "test", .tensors = &saved, .n_tensors = 1, .threads = 1};
    const struct store_options options = {.write = true, .owner = "test"};
    if (store_save_at(STORE, &options, &request, &err))
        fail_msg("%s", err.text);
}

static void forget(int64_t step)
{
    struct error err = ERROR_INIT;
    struct store *store;
    const struct store_options options = {.write = true, .owner = "test"};
    assert_int_equal(store_open(STORE, &options, &store, &err), 0);
    assert_int_equal(store_forget(store, &step, 1, &err), 0);
    store_close(store);
}

static void must_resume(int i, const struct shard_origin *wanted, int64_t step)
{
    struct error err = ERROR_INIT;
    int64_t restored;
    start_silent(&servers[i], i, 0);
    if (shard_resume(servers[i].shard, STORE, wanted, &restored, &err))
        fail_msg("%s", err.text);
    assert_int_equal(restored, step);
    start_answering(&servers[i], i);
}

static int ask_origin(const char *task, struct shard_origin *origin, struct error *err)
{
    struct client client;
    error_clear(err);
    open_client(&client, "ps:0");
    int code = verbs_origin(&client, task, origin, err);
    client_close(&client);
    return code;
}

static void assert_says(const struct error *err, const char *words)
{
    if (!strstr(err->text, words))
        fail_msg("'%s' does not say '%s'", err->text, words);
}

/* ---- one decision ---- */

static void the_others_find_exactly_what_the_first_decided(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct shard_origin origin;
    save_twice();
    must_resume(0, NULL, 2);
    assert_int_equal(get(&servers[0], "v"), 101);
    save_another(9);
    if (ask_origin("ps:1", &origin, &err))
        fail_msg("%s", err.text);
    assert_int_equal(origin.step, 2);
    must_resume(1, &origin, 2);
    assert_int_equal(get(&servers[1], "w"), 303);
    shards_end();
}

static void what_is_not_there_any_more_is_not_replaced_by_an_older_one(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct shard_origin origin;
    int64_t restored;
    save_twice();
    must_resume(0, NULL, 2);
    assert_int_equal(ask_origin("ps:1", &origin, &err), 0);
    forget(2);
    start_silent(&servers[1], 1, 0);
    assert_int_equal(shard_resume(servers[1].shard, STORE, &origin, &restored, &err), ERR_NOINPUT);
    save_another(2);
    assert_int_equal(shard_resume(servers[1].shard, STORE, &origin, &restored, &err), ERR_RETRY);
    assert_says(&err, "the first shard goes on from number");
    start_answering(&servers[1], 1);
    shards_end();
}

static void where_there_is_no_checkpoint_all_begin_anew(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct shard_origin origin;
    shards_start(0);
    for (int i = 0; i < SHARDS; i++)
        end(&servers[i]);
    must_resume(0, NULL, -1);
    assert_int_equal(ask_origin("ps:1", &origin, &err), 0);
    assert_int_equal(origin.step, -1);
    save_another(9);
    must_resume(1, &origin, -1);
    shards_end();
}

/* ---- started again alone ---- */

static void one_that_is_started_again_alone_is_let_in_while_nothing_has_gone_on(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct shard_origin first, second;
    save_twice();
    must_resume(0, NULL, 2);
    assert_int_equal(ask_origin("ps:1", &first, &err), 0);
    assert_int_equal(ask_origin("ps:1", &second, &err), 0);
    assert_true(first.decision == second.decision);
    put(&servers[0], "default", "v", 102);
    assert_int_equal(ask_origin("ps:1", &second, &err), ERR_RETRY);
    assert_says(&err, "training has gone on since");
    assert_int_equal(ask_origin("ps:2", &second, &err), 0); /* it had not asked before */
    shards_end();
}

static void nobody_resumes_beside_a_first_that_began_anew(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct shard_origin origin;
    shards_start(0);
    assert_int_equal(ask_origin("ps:1", &origin, &err), ERR_RETRY);
    assert_says(&err, "it began anew");
    shards_end();
}

static void what_was_restored_apart_is_not_saved(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct client client;
    int64_t step;
    save_twice();
    must_resume(0, NULL, 2);
    start(&servers[1], 1, 0);
    put(&servers[1], "default", "w", 5);
    open_client(&client, NULL);
    assert_int_equal(verbs_save(&client, STORE, false, &step, &err), ERR_CONFIG);
    assert_says(&err, "restored apart");
    error_clear(&err);
    assert_int_equal(verbs_restore(&client, STORE, &step, &err), 0); /* together again */
    assert_int_equal(step, 2);
    assert_int_equal(verbs_save(&client, STORE, false, &step, &err), 0);
    assert_int_equal(step, 3);
    client_close(&client);
    shards_end();
}

/* ---- two jobs ---- */

static void take_over(const char *claims)
{
    const struct store_options options = {.write = true, .owner = "test"};
    struct error err = ERROR_INIT;
    int64_t generation;
    if (store_take_over(STORE, &options, claims, &generation, &err))
        fail_msg("%s", err.text);
}

static void who_is_superseded_saves_no_more_and_ends(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct shard_origin origin;
    struct client client;
    int64_t step;
    save_twice();
    must_resume(0, NULL, 2);
    assert_int_equal(ask_origin("ps:1", &origin, &err), 0);
    must_resume(1, &origin, 2);
    open_client(&client, NULL);
    assert_int_equal(verbs_save(&client, STORE, false, &step, &err), 0);
    take_over(NULL);
    assert_int_equal(verbs_save(&client, STORE, false, &step, &err), ERR_DENIED);
    assert_says(&err, "has resumed from it since");
    assert_int_equal(failure_of(&servers[0]), ERR_DENIED);
    assert_true(shards_have_step(STORE, 3));
    assert_false(shards_have_step(STORE, 4));
    client_close(&client);
    shards_end();
}

static void a_job_that_is_started_again_gets_back_its_own_alone(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    const struct store_options options = {.write = true, .owner = "test"};
    int64_t generation;
    save_twice();
    take_over("a.claims");
    take_over("a.claims");
    take_over("b.claims");
    assert_int_equal(store_take_over(STORE, &options, "a.claims", &generation, &err), ERR_DENIED);
    assert_says(&err, "has resumed from it since");
    take_over("b.claims");
    shards_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_others_find_exactly_what_the_first_decided),
        cmocka_unit_test(what_is_not_there_any_more_is_not_replaced_by_an_older_one),
        cmocka_unit_test(where_there_is_no_checkpoint_all_begin_anew),
        cmocka_unit_test(one_that_is_started_again_alone_is_let_in_while_nothing_has_gone_on),
        cmocka_unit_test(nobody_resumes_beside_a_first_that_began_anew),
        cmocka_unit_test(what_was_restored_apart_is_not_saved),
        cmocka_unit_test(who_is_superseded_saves_no_more_and_ends),
        cmocka_unit_test(a_job_that_is_started_again_gets_back_its_own_alone),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
