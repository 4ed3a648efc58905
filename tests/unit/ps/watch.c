/* SPDX-License-Identifier: Apache-2.0
 *
 * The watcher's messages about checkpoints that a shard could not make, from the reply to `stats`,
 * which here the test gives.
 */
#include "ps/watch_private.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/unit.h"

#define PATIENCE 20.0 /* seconds */

struct lab {
    char folder[32], lines[1024];
    struct conns *shard;
    struct watch watch;
    struct watched_task task;
    int64_t failed, step; /* in the shard's reply; failed < 0: not in it */
    const char *why;
};

static void reply(void *context, const struct query *query)
{
    const struct lab *lab = context;
    msgpack_packer *packer = reply_begin(query->peer, query->id, lab->failed < 0 ? 0 : 3);
    assert_non_null(packer);
    if (lab->failed >= 0) {
        pack_key(packer, "saves_failed");
        msgpack_pack_int64(packer, lab->failed);
        pack_key(packer, "failed_step");
        msgpack_pack_int64(packer, lab->step);
        pack_key(packer, "failed_why");
        pack_text(packer, lab->why);
    }
    reply_end(query->peer, NULL, 0);
}

static void take_line(void *context, const char *text)
{
    struct lab *lab = context;
    size_t n = strlen(lab->lines);
    snprintf(lab->lines + n, sizeof lab->lines - n, "%s\n", text);
}

static struct conns *make_conns(const struct lab *lab, const char *task)
{
    struct error err = ERROR_INIT;
    struct conns_options options = {
        .peers = {.task = task, .producer = "test", .folder = lab->folder, .lease = 60}};
    struct conns *conns = conns_new(&options, &err);
    if (!conns)
        fail_msg("%s", err.text);
    return conns;
}

/* Runs both loops in this thread. */
static void pump(struct lab *lab, bool (*until)(void *context))
{
    for (int i = 0; i < PATIENCE * 1000 && !until(lab); i++) {
        loop_run_until(conns_loop(lab->shard), until, lab, 0);
        loop_run_until(conns_loop(lab->watch.conns), until, lab, 0.001);
    }
    assert_true(until(lab));
}

static bool is_linked(void *context)
{
    struct lab *lab = context;
    return conns_is_linked(lab->watch.conns, lab->task.name);
}

static bool is_answered(void *context)
{
    return !((const struct lab *)context)->task.asking;
}

static void open_lab(struct lab *lab)
{
    struct error err = ERROR_INIT;
    memset(lab, 0, sizeof *lab);
    snprintf(lab->folder, sizeof lab->folder, "/tmp/tf-watch-XXXXXX");
    assert_non_null(mkdtemp(lab->folder));
    lab->shard = make_conns(lab, "ps:0");
    conns_verb(lab->shard, "stats", reply, lab);
    assert_int_equal(peers_listen(conns_peers(lab->shard), "unix:p", NULL, &err), 0);
    lab->watch.conns = make_conns(lab, "");
    lab->watch.options.line = take_line;
    lab->watch.options.context = lab;
    lab->task.watch = &lab->watch;
    lab->task.is_shard = true;
    snprintf(lab->task.name, sizeof lab->task.name, "ps:0");
    assert_int_equal(peers_connect(conns_peers(lab->watch.conns), "ps:0", "unix:p", PATIENCE, &err),
                     0);
    pump(lab, is_linked);
}

static void close_lab(struct lab *lab)
{
    conns_free(lab->watch.conns);
    conns_free(lab->shard);
    assert_int_equal(rmdir(lab->folder), 0);
}

/* Expects the lines that the watcher prints after a reply. */
static void expect(struct lab *lab, int64_t failed, int64_t step, const char *why,
                   const char *lines)
{
    lab->failed = failed;
    lab->step = step;
    lab->why = why;
    lab->lines[0] = '\0';
    lab->task.asked = 0; /* no pause */
    watch_ask(&lab->watch, &lab->task);
    assert_true(lab->task.asking);
    pump(lab, is_answered);
    assert_string_equal(lab->lines, lines);
}

static void each_failure_is_told_once(void **state)
{
    struct lab lab;
    (void)state;
    open_lab(&lab);
    expect(&lab, 0, -1, "", "");
    expect(&lab, 1, 10, "ckpt: No space left on device",
           "unsaved ps:0 failed=1 step=10 why=ckpt: No space left on device\n");
    expect(&lab, 1, 10, "ckpt: No space left on device", "");
    expect(&lab, 4, 40, "ckpt: is locked", /* some replies were missed */
           "unsaved ps:0 failed=4 step=40 why=ckpt: is locked\n");
    close_lab(&lab);
}

static void a_shard_that_was_started_again_counts_anew(void **state)
{
    struct lab lab;
    (void)state;
    open_lab(&lab);
    expect(&lab, 2, 20, "x", "unsaved ps:0 failed=2 step=20 why=x\n");
    expect(&lab, 0, -1, "", "");
    expect(&lab, 1, 30, "y", "unsaved ps:0 failed=1 step=30 why=y\n");
    close_lab(&lab);
}

/* A message stays one line, whatever the reply contains. */
static void what_cannot_be_printed_is_not(void **state)
{
    struct lab lab;
    (void)state;
    open_lab(&lab);
    expect(&lab, 1, 10, "a\nup ps:1 pid=1", "unsaved ps:0 failed=1 step=10 why=?\n");
    expect(&lab, -1, 0, NULL, ""); /* a shard that does not count them */
    close_lab(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_failure_is_told_once),
        cmocka_unit_test(a_shard_that_was_started_again_counts_anew),
        cmocka_unit_test(what_cannot_be_printed_is_not),
    };
    return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
