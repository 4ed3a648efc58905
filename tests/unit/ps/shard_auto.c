/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints that shards make by themselves.
 */
#include <sys/stat.h>

#include "base/container_of.h"
#include "base/memory.h"
#include "lib/shards.h"
#include "ps/verbs.h"
#include "resource/clock.h"
#include "resource/clock_private.h"

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

/* Waits until nothing was written for half a second. The store itself cannot be asked: the shards
 * have it open, and a process may not open an LMDB environment twice. */
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

/* Returns where the clock stops for a checkpoint once the shard has seen the clock; 0: not yet. */
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

static void take_back_to_10(void)
{
    struct error err = ERROR_INIT;
    struct client client;
    int64_t step;
    open_client(&client, NULL);
    if (verbs_restore(&client, "ckpt@10", &step, &err))
        fail_msg("%s", err.text);
    assert_int_equal(step, 10);
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
        if (!shards_have_step("ckpt", step))
            continue;
        n++;
        assert_int_equal(step % 10, 0);
        assert_int_equal(shards_saved("ckpt", &of, "v"), step);
        assert_int_equal(shards_saved("ckpt", &of, "w"), step);
    }
    assert_int_equal(n, 3);
    await_stop_at(t.clock, 40);
    take_back_to_10();
    assert_int_equal(clock_version(t.clock), 10);
    await_stop_at(t.clock, 20);
    shards_end();
}

/* However late the shard sees the clock, updates do not go beyond the first checkpoint. */
static void a_new_clock_knows_at_once_where_it_stops(void **unused)
{
    (void)unused;
    shards_start(10);
    shard_start_saves(servers[0].shard);
    for (int i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof name, "clock%d", i);
        struct clock *clock = resource_get(servers[0].store, &clock_kind, "default", name);
        assert_int_equal(stop_at(clock), 10);
    }
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
    struct task_request request = {.verb = "stats", .answered = take_stats, .context = stats};
    if (client_ask_one(client, 0, &request, &err))
        fail_msg("%s", err.text);
}

/* Training continues without them, so a monitor must be able to see the failures. */
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
    FILE *file = fopen("ckpt/shards", "w"); /* a file instead of a folder */
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
    assert_int_equal(stats.failed, 1); /* and remains visible */
    assert_int_equal(stats.step, 10);
    client_close(&client);
    shards_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoints_are_made_at_their_very_update),
        cmocka_unit_test(a_new_clock_knows_at_once_where_it_stops),
        cmocka_unit_test(checkpoints_that_fail_are_counted),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
