/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "exec/aggregate.h"
#include "lib/shards.h"
#include "ps/saves.h"
#include "ps/snapshot.h"

static void pack_folder(void *context, msgpack_packer *packer)
{
    pack_key(packer, "folder");
    pack_text(packer, context);
    pack_key(packer, "seconds");
    msgpack_pack_double(packer, 0.5);
}

static void all_shards_are_saved_and_taken_back(void **unused)
{
    (void)unused;
    struct error err = ERROR_INIT;
    struct client client;
    static char here[] = "saved";
    struct request save = {.verb = "save", .n_fields = 2, .pack = pack_folder, .context = here};
    struct request restore = save;
    restore.verb = "restore";
    shards_start(0);
    open_client(&client, NULL);
    for (int i = 0; i < 2; i++)
        if (client_ask_one(&client, 0, &save, &err))
            fail_msg("%s", err.text);
    assert_true(!access("saved/1/manifest", F_OK) && !access("saved/2/manifest", F_OK));
    put(&servers[0], "default", "v", 100);
    put(&servers[1], "default", "w", 100);
    put(&servers[1], "default", "new", 100);
    if (client_ask(&client, &restore, &err))
        fail_msg("%s", err.text);
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
    struct manifest manifest = {0};
    struct client client;
    char *path;
    static char here[] = "saved";
    struct request save = {.verb = "save", .n_fields = 2, .pack = pack_folder, .context = here};
    shards_start(0);
    open_client(&client, "ps:0");
    assert_int_equal(client_ask_one(&client, 0, &save, &err), 0);
    end(&servers[1]);
    client.options.timeout = 20;
    assert_int_equal(client_ask_one(&client, 0, &save, &err), ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "ps:1"));
    assert_int_equal(saves_find("saved", -1, NULL, &manifest, &path, &err), 0);
    assert_int_equal(manifest.step, 1);
    assert_int_equal(manifest.files.n, SHARDS);
    mem_free(path);
    manifest_release(&manifest);
    assert_int_not_equal(access("saved/2.part", F_OK), 0);
    client_close(&client);
    shards_end();
}

/* ---- a clock that ticks by itself ---- */

struct ticker {
    struct clock *clock;
    struct clock_waiter waiter;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
    int64_t version;
};

static void done(struct clock_waiter *waiter, const struct clock_result *result,
                 const struct error *failure)
{
    struct ticker *t = (struct ticker *)((char *)waiter - offsetof(struct ticker, waiter));
    assert_null(failure);
    pthread_mutex_lock(&t->lock);
    t->done = true;
    t->version = result->version;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

static void await(struct ticker *t)
{
    pthread_mutex_lock(&t->lock);
    while (!t->done)
        pthread_cond_wait(&t->changed, &t->lock);
    t->done = false;
    pthread_mutex_unlock(&t->lock);
}

/* One asynchronous worker: a push, then the round that it makes. v is the number of rounds. */
static void tick(struct ticker *t, struct ticker *rounds, int64_t step)
{
    struct error err = ERROR_INIT;
    struct push_id id = {0, 1, step};
    clock_push(t->clock, &id, step - 1, &t->waiter);
    clock_round(t->clock, &rounds->waiter);
    await(rounds);
    assert_int_equal(rounds->version, step);
    put(&servers[0], "default", "v", step);
    put(&servers[1], "default", "w", step);
    assert_int_equal(clock_advance(t->clock, step, &err), 0);
    await(t);
}

static void checkpoints_are_made_at_their_very_update(void **unused)
{
    (void)unused;
    struct error err = ERROR_INIT;
    struct ticker t = {.waiter.done = done,
                       .lock = PTHREAD_MUTEX_INITIALIZER,
                       .changed = PTHREAD_COND_INITIALIZER};
    shards_start(10);
    t.clock = resource_get(servers[0].store, &clock_kind, "default", "clock");
    assert_int_equal(clock_configure(t.clock, "async", 1, &err), 0);
    struct ticker rounds = t;
    struct push_id id = {0, 1, 0};
    clock_join(t.clock, &id, &t.waiter);
    await(&t);
    usleep(100000); /* until the shard has seen that there is a clock */
    for (int64_t step = 1; step <= 35; step++) {
        tick(&t, &rounds, step);
    }
    for (int i = 0; access("ckpt/30", F_OK) && i < 500; i++)
        usleep(10000);
    int n = 0;
    for (int64_t step = 1; step <= 35; step++) {
        struct manifest manifest = {0};
        char *path, file[256];
        if (!saves_find("ckpt", step, NULL, &manifest, &path, &err)) {
            n++;
            assert_int_equal(step % 10, 0);
            assert_int_equal(manifest.pushes.n, 1);
            assert_int_equal(manifest.pushes.items[0].count, step);
            for (int i = 0; i < SHARDS; i++) {
                struct server restored = {.store = variable_store_new()};
                snprintf(file, sizeof file, "%s/ps-%d.ckpt", path, i);
                assert_int_equal(snapshot_restore(restored.store, NULL, file, 1, &err), 0);
                assert_int_equal(get(&restored, i ? "w" : "v"), step);
                variable_store_free(restored.store);
            }
        }
        mem_free(path);
        manifest_release(&manifest);
    }
    assert_int_equal(n, 3);
    shards_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_shards_are_saved_and_taken_back),
        cmocka_unit_test(a_shard_that_is_gone_stops_a_save_and_spoils_nothing),
        cmocka_unit_test(checkpoints_are_made_at_their_very_update),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
