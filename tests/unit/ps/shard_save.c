/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/container_of.h"
#include "base/memory.h"
#include "checkpoint/store/checkpoint.h"
#include "checkpoint/store/save.h"
#include "lib/shards.h"
#include "resource/clock.h"
#include "resource/clock_private.h"

/* The value of an int64 in a checkpoint of the folder; its step in *step. */
static int64_t saved(const char *store_name, int64_t *step, const char *name)
{
    struct error err = ERROR_INIT, passed_over = ERROR_INIT;
    struct store *store;
    struct checkpoint *c = NULL;
    struct tensor value;
    if (store_open(store_name, NULL, &store, &err) ||
        checkpoint_open(store, *step, &c, &passed_over, &err))
        fail_msg("%s", err.text);
    assert_int_equal(passed_over.code, 0);
    assert_int_equal(c->manifest.shards.n, SHARDS);
    *step = c->manifest.step;
    int i = checkpoint_find(c, "default", name);
    assert_true(i >= 0);
    assert_int_equal(checkpoint_read(c, i, &value, &err), 0);
    int64_t result = *(int64_t *)value.data;
    tensor_release(&value);
    checkpoint_close(c);
    store_close(store);
    return result;
}

static bool has_step(const char *store_name, int64_t step)
{
    struct error err = ERROR_INIT;
    struct store *store;
    struct checkpoint *c = NULL;
    if (store_open(store_name, NULL, &store, &err))
        return false;
    bool has = !checkpoint_open(store, step, &c, NULL, &err);
    if (has)
        checkpoint_close(c);
    store_close(store);
    return has;
}

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
    assert_true(has_step("saved", 1) && has_step("saved", 2));
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
    struct client client;
    int64_t step = CHECKPOINT_NEWEST;
    static char here[] = "saved";
    struct request save = {.verb = "save", .n_fields = 2, .pack = pack_folder, .context = here};
    shards_start(0);
    open_client(&client, "ps:0");
    assert_int_equal(client_ask_one(&client, 0, &save, &err), 0);
    end(&servers[1]);
    client.options.timeout = 20;
    assert_int_equal(client_ask_one(&client, 0, &save, &err), ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "ps:1"));
    assert_int_equal(saved("saved", &step, "w"), 3);
    assert_int_equal(step, 1);
    client_close(&client);
    shards_end();
}

/* ---- what other shards have saved ---- */

/* A variable, and perhaps a part of a clock. */
static void save_as_one_process(const char *path, int64_t value, bool with_clock)
{
    struct error err = ERROR_INIT;
    const struct tensor scalar = tensor_borrow(INT64, &(struct shape){0}, &value);
    const struct save_tensor saved[] = {
        {.container = "default", .name = "before", .updates = 1, .value = scalar},
        {.container = "default", .name = "clock:c/arrivals", .value = scalar}};
    struct save_request request = {
        .step = 1, .producer = "test", .tensors = saved, .n_tensors = 1 + with_clock, .threads = 1};
    const struct store_options options = {.write = true};
    assert_int_equal(store_create(path, &err), 0);
    assert_int_equal(store_save_at(path, &options, &request, &err), 0);
}

/* Variables that a graph makes, one after the other. */
struct maker {
    struct server *server;
    atomic_bool over;
    int made;
};

static void *make_variables(void *argument)
{
    struct maker *maker = argument;
    while (!atomic_load(&maker->over)) {
        struct error err = ERROR_INIT;
        struct variable like = {.container = "default", .type = INT64}, *variable;
        char name[32];
        snprintf(name, sizeof name, "new%d", maker->made++);
        like.name = name;
        if (variable_store_get(maker->server->store, &like, &variable, &err))
            fail_msg("%s", err.text);
        usleep(200); /* a lock is not fair */
    }
    return NULL;
}

static void ignore_result(struct clock_waiter *waiter, const struct clock_result *result,
                          const struct error *failure)
{
    (void)waiter, (void)result, (void)failure;
}

static void a_save_succeeds_while_variables_claim_their_values(void **unused)
{
    (void)unused;
    struct error err = ERROR_INIT;
    struct client client;
    struct maker maker = {.server = &servers[0]};
    pthread_t thread;
    static char here[] = "saved";
    struct request save = {.verb = "save", .n_fields = 2, .pack = pack_folder, .context = here};
    struct request restore = save;
    restore.verb = "restore";
    shards_start(0);
    save_as_one_process(here, 7, false);
    open_client(&client, NULL);
    if (client_ask(&client, &restore, &err))
        fail_msg("%s", err.text);
    put(&servers[0], "default", "v", 1); /* or there would be nothing to save */
    assert_int_equal(pthread_create(&thread, NULL, make_variables, &maker), 0);
    for (int i = 0; i < 4; i++) /* fewer than are kept */
        if (client_ask_one(&client, 0, &save, &err))
            fail_msg("save %d: %s", i, err.text);
    atomic_store(&maker.over, true);
    pthread_join(thread, NULL);
    assert_true(maker.made > 20);
    struct variable like = {.container = "default", .name = "before", .type = INT64}, *variable;
    assert_int_equal(variable_store_get(servers[0].store, &like, &variable, &err), 0);
    assert_int_equal(get(&servers[0], "before"), 7);
    client_close(&client);
    shards_end();
}

/* Variables come one after the other, and the clock with them: in between a checkpoint would be of
 * half of them, or of a step that never was. */
static void nothing_is_saved_before_all_is_there_again(void **unused)
{
    (void)unused;
    struct error err = ERROR_INIT;
    struct client client;
    struct clock_waiter waiter = {.done = ignore_result};
    static char here[] = "saved", other[] = "other";
    struct request save = {.verb = "save", .n_fields = 2, .pack = pack_folder, .context = here};
    struct request restore = save;
    restore.verb = "restore";
    shards_start(0);
    save_as_one_process(here, 7, true);
    open_client(&client, NULL);
    if (client_ask(&client, &restore, &err))
        fail_msg("%s", err.text);
    put(&servers[0], "default", "v", 1);
    for (int i = 0; i < 2; i++) {
        save.context = i ? other : here;
        assert_int_equal(client_ask_one(&client, 0, &save, &err), ERR_RETRY);
        assert_non_null(strstr(err.text, "no worker has come"));
    }
    assert_false(has_step("saved", 2) || has_step("other", 1));
    struct clock *clock = resource_get(servers[0].store, &clock_kind, "default", "c");
    clock_join(clock, &(struct push_id){.incarnation = 1}, &waiter);
    save.context = other;
    if (client_ask_one(&client, 0, &save, &err))
        fail_msg("%s", err.text);
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
    struct ticker *t = CONTAINER_OF(waiter, struct ticker, waiter);
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

/* Until nothing was written for half a second. The store itself must not be asked: the shards have
 * it open, and a process may not open an LMDB environment twice. */
static void await_saves(void)
{
    struct stat last = {0}, now;
    for (int i = 0, calm = 0; calm < 50 && i < 1000; i++) {
        usleep(10000);
        assert_int_equal(stat("ckpt/data.mdb", &now), 0);
        calm = memcmp(&now.st_mtim, &last.st_mtim, sizeof now.st_mtim) ? 0 : calm + 1;
        last = now;
    }
}

/* The shard has seen that there is a clock, and says where it stops for a checkpoint. 0: not yet.
 */
static int64_t stop_at(struct clock *clock)
{
    pthread_mutex_lock(&clock->lock);
    int64_t version = clock->stop_at;
    pthread_mutex_unlock(&clock->lock);
    return version;
}

static void await_stop_at(struct clock *clock, int64_t version)
{
    for (int i = 0; stop_at(clock) != version && i < 1000; i++)
        usleep(10000);
    assert_int_equal(stop_at(clock), version);
}

static void pack_step_10(void *context, msgpack_packer *packer)
{
    pack_key(packer, "folder");
    pack_text(packer, context);
    pack_key(packer, "step");
    msgpack_pack_int64(packer, 10);
}

static void take_back_to_10(void)
{
    struct error err = ERROR_INIT;
    struct client client;
    static char store[] = "ckpt";
    struct request restore = {
        .verb = "restore", .n_fields = 2, .pack = pack_step_10, .context = store};
    open_client(&client, NULL);
    if (client_ask(&client, &restore, &err))
        fail_msg("%s", err.text);
    client_close(&client);
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
    usleep(150000); /* more often than it looks */
    assert_int_equal(stop_at(t.clock), 0);
    shard_start_saves(servers[0].shard);
    await_stop_at(t.clock, 10);
    for (int64_t step = 1; step <= 35; step++) {
        tick(&t, &rounds, step);
    }
    await_saves();
    int n = 0;
    for (int64_t step = 1; step <= 35; step++) {
        int64_t of = step;
        if (!has_step("ckpt", step))
            continue;
        n++;
        assert_int_equal(step % 10, 0);
        assert_int_equal(saved("ckpt", &of, "v"), step);
        assert_int_equal(saved("ckpt", &of, "w"), step);
    }
    assert_int_equal(n, 3);
    await_stop_at(t.clock, 40);
    take_back_to_10();
    assert_int_equal(clock_version(t.clock), 10);
    await_stop_at(t.clock, 20);
    shards_end();
}

struct stats {
    int64_t saves, failed, step;
    char why[256];
};

static void take_stats(void *context, const char *task, const struct record *reply)
{
    struct stats *stats = context;
    struct arena arena = ARENA_INIT;
    const char *why = "";
    (void)task;
    record_get_int(&reply->header, "saves", &stats->saves);
    record_get_int(&reply->header, "saves_failed", &stats->failed);
    record_get_int(&reply->header, "failed_step", &stats->step);
    record_get_text(&reply->header, "failed_why", &arena, &why);
    snprintf(stats->why, sizeof stats->why, "%s", why);
    arena_release(&arena);
}

static void ask_stats(struct client *client, struct stats *stats)
{
    struct error err = ERROR_INIT;
    struct request request = {.verb = "stats", .answered = take_stats, .context = stats};
    if (client_ask_one(client, 0, &request, &err))
        fail_msg("%s", err.text);
}

/* Training goes on without them: whoever looks after the job must be able to see it. */
static void checkpoints_that_fail_are_counted(void **unused)
{
    (void)unused;
    struct error err = ERROR_INIT;
    struct client client;
    struct stats stats = {.failed = -1};
    struct ticker t = {.waiter.done = done,
                       .lock = PTHREAD_MUTEX_INITIALIZER,
                       .changed = PTHREAD_COND_INITIALIZER};
    shards_start(10);
    open_client(&client, "ps:0");
    t.clock = resource_get(servers[0].store, &clock_kind, "default", "clock");
    assert_int_equal(clock_configure(t.clock, "async", 1, &err), 0);
    struct ticker rounds = t;
    struct push_id id = {0, 1, 0};
    clock_join(t.clock, &id, &t.waiter);
    await(&t);
    ask_stats(&client, &stats);
    assert_int_equal(stats.saves, 0);
    assert_int_equal(stats.failed, 0);
    assert_string_equal(stats.why, "");
    FILE *file = fopen("ckpt/shards", "w"); /* where a folder should be */
    fclose(file);
    shard_start_saves(servers[0].shard);
    await_stop_at(t.clock, 10);
    for (int64_t step = 1; step <= 15; step++)
        tick(&t, &rounds, step);
    for (int i = 0; i < 500 && stats.failed < 1; i++, usleep(10000))
        ask_stats(&client, &stats);
    assert_int_equal(stats.failed, 1);
    assert_int_equal(stats.step, 10);
    assert_non_null(strstr(stats.why, "ckpt/"));
    assert_int_equal(unlink("ckpt/shards"), 0);
    for (int64_t step = 16; step <= 25; step++)
        tick(&t, &rounds, step);
    for (int i = 0; i < 500 && stats.saves < 1; i++, usleep(10000))
        ask_stats(&client, &stats);
    assert_int_equal(stats.saves, 1);
    assert_int_equal(stats.failed, 1); /* and stays to be seen */
    assert_int_equal(stats.step, 10);
    client_close(&client);
    shards_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_shards_are_saved_and_taken_back),
        cmocka_unit_test(a_shard_that_is_gone_stops_a_save_and_spoils_nothing),
        cmocka_unit_test(a_save_succeeds_while_variables_claim_their_values),
        cmocka_unit_test(nothing_is_saved_before_all_is_there_again),
        cmocka_unit_test(checkpoints_are_made_at_their_very_update),
        cmocka_unit_test(checkpoints_that_fail_are_counted),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
