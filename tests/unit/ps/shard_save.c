/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/container_of.h"
#include "base/memory.h"
#include "checkpoint/store/checkpoint.h"
#include "checkpoint/store/save.h"
#include "lib/shards.h"
#include "ps/verbs.h"
#include "resource/clock.h"
#include "resource/clock_private.h"

static void pack_folder(void *context, msgpack_packer *packer)
{
    pack_key(packer, "folder");
    pack_text(packer, context);
    pack_key(packer, "seconds");
    msgpack_pack_double(packer, 0.5);
}

static void must_restore(struct client *client, const char *where)
{
    struct error err = ERROR_INIT;
    int64_t step;
    if (verbs_restore(client, where, &step, &err))
        fail_msg("%s", err.text);
}

static void all_shards_are_saved_and_taken_back(void **unused)
{
    (void)unused;
    struct error err = ERROR_INIT;
    struct client client;
    static char here[] = "saved";
    struct task_request save = {.verb = "save", .n_fields = 2, .pack = pack_folder, .fields = here};
    shards_start(0);
    open_client(&client, NULL);
    for (int i = 0; i < 2; i++)
        if (client_ask_one(&client, 0, &save, &err))
            fail_msg("%s", err.text);
    assert_true(shards_have_step("saved", 1) && shards_have_step("saved", 2));
    put(&servers[0], "default", "v", 100);
    put(&servers[1], "default", "w", 100);
    put(&servers[1], "default", "new", 100);
    must_restore(&client, here);
    assert_int_equal(get(&servers[0], "v"), 1);
    assert_int_equal(get(&servers[1], "w"), 3);
    assert_false(has_value(&servers[1], "default", "new"));
    assert_told(&servers[1], "restored from saved@2");
    client_close(&client);
    shards_end();
}

static void a_shard_that_is_gone_stops_a_save_and_spoils_nothing(void **unused)
{
    (void)unused;
    struct error err = ERROR_INIT;
    struct client client;
    int64_t step = CHECKPOINT_NEWEST;
    static char here[] = "saved";
    struct task_request save = {.verb = "save", .n_fields = 2, .pack = pack_folder, .fields = here};
    shards_start(0);
    open_client(&client, "ps:0");
    assert_int_equal(client_ask_one(&client, 0, &save, &err), 0);
    end(&servers[1]);
    client.member.options.timeout = 20;
    assert_int_equal(client_ask_one(&client, 0, &save, &err), ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "ps:1"));
    assert_int_equal(shards_saved("saved", &step, "w"), 3);
    assert_int_equal(step, 1);
    client_close(&client);
    shards_end();
}

/* ---- checkpoints that lack variables of other shards ---- */

#define NEW_VARIABLES 200 /* that graphs make later */

/* Saves variables, and optionally a part of a clock. */
static void save_as_one_process(const char *path, int64_t value, bool with_clock)
{
    struct error err = ERROR_INIT;
    const struct tensor scalar = tensor_borrow(INT64, &(struct shape){0}, &value);
    static char names[NEW_VARIABLES][16];
    static struct variable_record saved[NEW_VARIABLES + 2];
    struct save_request request = {.step = 1, .producer = "test", .tensors = saved, .threads = 1};
    size_t n = 0;
    saved[n++] = (struct variable_record){
        .container = "default", .name = "before", .updates = 1, .value = scalar};
    for (int i = 0; i < NEW_VARIABLES; i++) {
        snprintf(names[i], sizeof names[i], "new%d", i);
        saved[n++] = (struct variable_record){
            .container = "default", .name = names[i], .updates = 1, .value = scalar};
    }
    saved[n++] = (struct variable_record){
        .container = "default", .name = "clock:c/arrivals", .value = scalar};
    request.n_tensors = n - !with_clock;
    const struct store_options options = {.write = true};
    assert_int_equal(store_create(path, &err), 0);
    assert_int_equal(store_save_at(path, &options, &request, &err), 0);
}

/* Creates variables one after the other, as a graph does; all of them are in the checkpoint. */
struct maker {
    struct test_server *server;
    atomic_bool over;
    atomic_int made;
};

static void *make_variables(void *argument)
{
    struct maker *maker = argument;
    for (int i = 0; !atomic_load(&maker->over) && i < NEW_VARIABLES; i++) {
        struct error err = ERROR_INIT;
        struct variable like = {.container = "default", .type = INT64}, *variable;
        char name[32];
        snprintf(name, sizeof name, "new%d", i);
        like.name = name;
        if (variable_store_get(maker->server->store, &like, &variable, &err))
            fail_msg("%s", err.text);
        atomic_store(&maker->made, i + 1);
        usleep(2000); /* locks are not fair */
    }
    return NULL;
}

static void ignore_result(struct clock_waiter *waiter, const struct clock_result *result,
                          const struct error *failure)
{
    (void)waiter, (void)result, (void)failure;
}

/* Sets the variables that shards_start made and the checkpoint lacks. */
static void put_others(void)
{
    put(&servers[0], "default", "v", 1);
    put(&servers[0], "scratch", "s", 2);
    put(&servers[1], "default", "w", 3);
}

static void a_save_succeeds_while_variables_claim_their_values(void **unused)
{
    (void)unused;
    struct error err = ERROR_INIT;
    struct client client;
    struct maker maker = {.server = &servers[0]};
    pthread_t thread;
    static char here[] = "saved";
    struct task_request save = {.verb = "save", .n_fields = 2, .pack = pack_folder, .fields = here};
    shards_start(0);
    save_as_one_process(here, 7, false);
    open_client(&client, NULL);
    must_restore(&client, here);
    put_others(); /* variables that the checkpoint lacks */
    assert_int_equal(pthread_create(&thread, NULL, make_variables, &maker), 0);
    for (int i = 0, made = 0; i < 4; i++) { /* fewer than are kept */
        int more = made + 6 < NEW_VARIABLES ? made + 6 : NEW_VARIABLES;
        while (atomic_load(&maker.made) < more)
            usleep(100); /* each save meets some variables that are being restored */
        made = atomic_load(&maker.made);
        if (client_ask_one(&client, 0, &save, &err))
            fail_msg("save %d: %s", i, err.text);
    }
    atomic_store(&maker.over, true);
    pthread_join(thread, NULL);
    assert_true(atomic_load(&maker.made) >= 24);
    struct variable like = {.container = "default", .name = "before", .type = INT64}, *variable;
    assert_int_equal(variable_store_get(servers[0].store, &like, &variable, &err), 0);
    assert_int_equal(get(&servers[0], "before"), 7);
    client_close(&client);
    shards_end();
}

static void give(struct variable *variable, int64_t number)
{
    struct error err = ERROR_INIT;
    const struct tensor value = tensor_borrow(INT64, &SHAPE_SCALAR, &number);
    variable_lock_wait(variable, true);
    if (variable_put_in(variable, &value, &err))
        fail_msg("%s", err.text);
    variable_unlock(variable, true);
}

/* A checkpoint that lacks a variable could not be restored. */
static void a_save_that_would_lack_a_variable_is_refused(void **unused)
{
    (void)unused;
    struct error err = ERROR_INIT;
    struct client client;
    struct variable like = {.container = "default", .name = "late", .type = INT64}, *variable;
    static char here[] = "lacking";
    struct task_request save = {.verb = "save", .n_fields = 2, .pack = pack_folder, .fields = here};
    shards_start(0);
    open_client(&client, NULL);
    assert_int_equal(variable_store_get(servers[0].store, &like, &variable, &err), 0);
    error_clear(&err);
    assert_int_equal(client_ask_one(&client, 0, &save, &err), ERR_RETRY);
    assert_non_null(strstr(err.text, "variable 'late' has no value"));
    give(variable, 2);
    error_clear(&err);
    if (client_ask_one(&client, 0, &save, &err))
        fail_msg("%s", err.text);
    client_close(&client);
    shards_end();
}

/* Variables come one after the other, and the clock with them: a checkpoint in between would mix
 * old and new values, or belong to a step that never was. */
static void nothing_is_saved_before_all_is_there_again(void **unused)
{
    (void)unused;
    struct error err = ERROR_INIT;
    struct client client;
    struct clock_waiter waiter = {.done = ignore_result};
    static char here[] = "saved", other[] = "other";
    struct task_request save = {.verb = "save", .n_fields = 2, .pack = pack_folder, .fields = here};
    shards_start(0);
    save_as_one_process(here, 7, true);
    open_client(&client, NULL);
    must_restore(&client, here);
    put(&servers[0], "default", "v", 1);
    for (int i = 0; i < 2; i++) {
        save.context = i ? other : here;
        assert_int_equal(client_ask_one(&client, 0, &save, &err), ERR_RETRY);
        assert_non_null(strstr(err.text, "no worker has come"));
    }
    assert_false(shards_have_step("saved", 2) || shards_have_step("other", 1));
    struct clock *clock = resource_get(servers[0].store, &clock_kind, "default", "c");
    clock_join(clock, &(struct push_id){.incarnation = 1}, &waiter);
    put_others(); /* as the entry init does */
    save.context = other;
    if (client_ask_one(&client, 0, &save, &err))
        fail_msg("%s", err.text);
    client_close(&client);
    shards_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_shards_are_saved_and_taken_back),
        cmocka_unit_test(a_shard_that_is_gone_stops_a_save_and_spoils_nothing),
        cmocka_unit_test(a_save_that_would_lack_a_variable_is_refused),
        cmocka_unit_test(a_save_succeeds_while_variables_claim_their_values),
        cmocka_unit_test(nothing_is_saved_before_all_is_there_again),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
