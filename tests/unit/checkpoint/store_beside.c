/* SPDX-License-Identifier: Apache-2.0
 *
 * Readers beside a process that saves, forgets and prunes without pause: a checkpoint that is open
 * is read whole, forgotten ones are passed over, and no reader sees damage.
 */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "checkpoint/command/command.h"
#include "checkpoint/store/maintain.h"
#include "checkpoint/store/verify.h"
#include "checkpoint/variables/restore.h"
#include "lib/stores.h"

#define FLOATS 3000

enum { KEPT = 8, SHARDS = 2, ROUNDS = 70 };

static const char *const shards[SHARDS] = {"s0", "s1"};
static pid_t writer = -1;
static char path[STORES_PATH_BYTES + 16], other[STORES_PATH_BYTES + 16];

/* ---- the writer ---- */

static void save_shards(struct store *store, int64_t step)
{
    struct error err = ERROR_INIT;
    for (int i = 0; i < SHARDS; i++) {
        const struct store_options options = {
            .write = true, .lock_wait = 10, .owner = "test", .shard = shards[i]};
        struct store *shard;
        struct variable_record values[3];
        stores_values(values, step, FLOATS);
        const struct save_request part = {.step = step,
                                          .producer = "test",
                                          .tensors = i ? values + 1 : values,
                                          .n_tensors = i ? 2 : 1,
                                          .is_part = true};
        if (store_open(path, &options, &shard, &err) || store_save(shard, &part, NULL, &err))
            _exit(1);
        store_close(shard);
        stores_release(values);
    }
    const struct save_request whole = {
        .step = step, .producer = "test", .shards = shards, .n_shards = SHARDS};
    if (store_save(store, &whole, NULL, &err))
        _exit(1);
}

/* Also saves steps once more, so that a listed checkpoint is replaced before it is read. */
static void write_on(bool has_shards, int64_t first, int64_t last)
{
    static const struct ckpt_run none;
    struct error err = ERROR_INIT;
    struct prune_report report;
    for (int64_t step = first; step <= last; step++) {
        struct store *store = stores_open(path, true);
        if (has_shards)
            save_shards(store, step);
        else if (stores_save(store, step, FLOATS, NULL, &err))
            _exit(1);
        if (has_shards && step % 5 == 0)
            save_shards(store, step);
        if (step > KEPT && (store_forget_old(store, &none, KEPT, &err) ||
                            (step % 2 && store_prune(store, false, NULL, &report, &err))))
            _exit(1);
        store_close(store);
    }
}

static void start_writer(bool has_shards)
{
    struct error err = ERROR_INIT;
    if (store_create(path, &err) || store_create(other, &err))
        fail_msg("%s", err.text);
    write_on(has_shards, 1, KEPT + 1);
    writer = fork();
    if (!writer) {
        write_on(has_shards, KEPT + 2, INT64_MAX);
        _exit(0);
    }
}

static void stop_writer(void)
{
    if (writer > 0) {
        kill(writer, SIGKILL);
        waitpid(writer, NULL, 0);
    }
    writer = -1;
}

/* ---- the readers ---- */

static void well(const struct error *err)
{
    if (err->code)
        fail_msg("%d: %s", err->code, err->text);
}

static void verify(void)
{
    struct verify_report report;
    struct verify_request request = {.fraction = 1};
    struct error err = ERROR_INIT;
    struct store *store = stores_open(path, false);
    store_verify(store, &request, &report, &err);
    well(&err);
    for (size_t i = 0; i < report.problems.n; i++)
        fail_msg("%s", report.problems.items[i].err.text);
    verify_report_release(&report);
    store_close(store);
}

static void read_newest(void)
{
    struct source source;
    struct error err = ERROR_INIT;
    source_open(path, &source, &err);
    well(&err);
    well(&source.passed_over);
    if (stores_compare(source.checkpoint, FLOATS, &err))
        well(&err);
    source_close(&source);
}

static void fail_skipped(struct checkpoint_listener *skipped, const char *why)
{
    (void)skipped;
    fail_msg("%s", why);
}

static void read_intact(void)
{
    struct checkpoint_listener skipped = {.tell = fail_skipped};
    struct error err = ERROR_INIT;
    struct store *store = stores_open(path, false);
    struct checkpoint *c;
    checkpoint_open_intact(store, CHECKPOINT_NEWEST, &skipped, &c, &err);
    well(&err);
    checkpoint_close(c);
    store_close(store);
}

/* Reads the next one to be forgotten. */
static void read_oldest(void)
{
    struct error err = ERROR_INIT, damaged = ERROR_INIT;
    struct store *store = stores_open(path, false);
    struct checkpoint *c;
    manifest_vec all;
    store_manifests(store, &all, &damaged, &err);
    well(&err);
    well(&damaged);
    assert_true(all.n >= KEPT);
    if (!checkpoint_open(store, all.items[0].step, &c, NULL, &err)) {
        if (stores_compare(c, FLOATS, &err))
            well(&err);
        checkpoint_close(c);
    } else if (err.code != ERR_NOINPUT) {
        well(&err);
    }
    manifests_release(&all);
    store_close(store);
}

static void restore(void)
{
    struct error err = ERROR_INIT;
    struct store *store = stores_open(path, false);
    struct graph *graph = graph_new(NULL);
    const struct restore_request request = {.graph = graph};
    struct restore_result restored;
    store_restore(store, CHECKPOINT_NEWEST, &request, &restored, &err);
    well(&err);
    well(&restored.passed_over);
    graph_free(graph);
    store_close(store);
}

static void say(void *context, const char *line)
{
    (void)context;
    fail_msg("%s", line);
}

static void copy(void)
{
    char *operands[] = {path, other};
    struct command c = {
        .operands = operands, .n_operands = 2, .owner = "test", .producer = "test", .say = say};
    struct error err = ERROR_INIT;
    static const struct ckpt_run none;
    command_copy(&c, &err);
    well(&err);
    command_release(&c);
    struct store *store = stores_open(other, true);
    struct prune_report report;
    store_forget_old(store, &none, 1, &err);
    store_prune(store, false, NULL, &report, &err);
    well(&err);
    store_close(store);
}

/* READER_ROUNDS: number of rounds. */
static void read_beside(bool has_shards)
{
    static void (*const readers[])(void) = {verify,      read_newest, read_intact,
                                            read_oldest, restore,     copy};
    const char *rounds = getenv("READER_ROUNDS");
    start_writer(has_shards);
    int status;
    for (int n = 0; n < (rounds ? atoi(rounds) : ROUNDS); n++)
        readers[n % (int)(sizeof readers / sizeof *readers)]();
    assert_int_equal(waitpid(writer, &status, WNOHANG), 0); /* the writer ran all the time */
    stop_writer();
    verify();
}

static void readers_beside_a_writer_see_no_damage(void **state)
{
    (void)state;
    read_beside(false);
}

static void nor_do_those_of_a_store_with_shards(void **state)
{
    (void)state;
    read_beside(true);
}

static int setup(void **state)
{
    *state = (void *)(uintptr_t)stores_folder();
    snprintf(path, sizeof path, "%s/store", (char *)*state);
    snprintf(other, sizeof other, "%s/other", (char *)*state);
    return 0;
}

static int teardown(void **state)
{
    stop_writer();
    stores_remove(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(readers_beside_a_writer_see_no_damage, setup, teardown),
        cmocka_unit_test_setup_teardown(nor_do_those_of_a_store_with_shards, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
