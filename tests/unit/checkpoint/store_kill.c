/* SPDX-License-Identifier: Apache-2.0
 *
 * kill -9 at random moments of a writer that saves, forgets, prunes and copies: checkpoints that it
 * reported as saved restore exactly, the pages are sound, and nothing stays locked.
 *
 * STORE_KILLS: how many times (a few hundred by default).
 */
#include <signal.h>
#include <sys/wait.h>

#include "checkpoint/store/maintain.h"
#include "lib/stores.h"

#define SIZE 20000 /* floats: 20 pages */
#define KEEP 3

static char path[STORES_PATH_BYTES + 16], copy_path[STORES_PATH_BYTES + 16];

static int setup(void **state)
{
    struct error err = ERROR_INIT;
    *state = (void *)(uintptr_t)stores_folder();
    snprintf(path, sizeof path, "%s/store", (char *)*state);
    snprintf(copy_path, sizeof copy_path, "%s/copy", (char *)*state);
    if (store_create(path, &err) || store_create(copy_path, &err))
        fail_msg("%s", err.text);
    return 0;
}

static int teardown(void **state)
{
    stores_remove(*state);
    return 0;
}

/* ---- the writer: reports through a pipe which step is committed, and to which store ---- */

struct news {
    int64_t step;
    bool copied;
};

static void tell(int fd, int64_t step, bool copied)
{
    struct news news = {.step = step, .copied = copied};
    if (write(fd, &news, sizeof news) != sizeof news)
        _exit(9);
}

static void must(int code)
{
    if (code)
        _exit(8);
}

static struct store *open_writing(const char *name)
{
    struct store *store;
    struct error err = ERROR_INIT;
    const struct store_options options = {.write = true, .owner = "test"};
    must(store_open(name, &options, &store, &err));
    return store;
}

static _Noreturn void work(int64_t step, int fd)
{
    struct store *store = open_writing(path), *other = open_writing(copy_path);
    struct prune_report report;
    struct error err = ERROR_INIT;
    for (;; step++) {
        struct checkpoint *c;
        must(stores_save(store, step, SIZE, NULL, &err));
        tell(fd, step, false);
        must(store_forget(store, (int64_t[]){step - KEEP, step - KEEP - 1}, 2, &err));
        must(store_prune(store, false, NULL, &report, &err));
        must(checkpoint_open(store, CHECKPOINT_NEWEST, &c, NULL, &err));
        must(checkpoint_copy(c, other, false, NULL, NULL, &err));
        tell(fd, step, true);
        checkpoint_close(c);
        must(store_forget(other, (int64_t[]){step - 1, step - 2}, 2, &err));
        must(store_prune(other, false, NULL, &report, &err));
    }
}

/* ---- the killer ---- */

/* Lets a writer work for a while from `step` on, and returns the steps that it reported. Some
 * writers get time for a save before they are killed, as on a busy machine others may not come that
 * far. */
static void cycle(int64_t step, uint64_t random, int64_t *saved, int64_t *copied)
{
    struct news news;
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (!child)
        work(step, ends[1]);
    assert_true(child > 0);
    close(ends[1]);
    if (random % 4 == 0 && read(ends[0], &news, sizeof news) == sizeof news)
        *saved = news.step;
    usleep((useconds_t)(random / 4 % 20000));
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        fail_msg("the writer ended itself: %#x", status);
    while (read(ends[0], &news, sizeof news) == sizeof news)
        *(news.copied ? copied : saved) = news.step;
    close(ends[0]);
}

/* Every checkpoint in the store's list restores; the newest is at least the one reported. */
static int64_t check(const char *name, int64_t told)
{
    struct store *store = stores_open(name, true);
    struct error err = ERROR_INIT;
    manifest_vec all;
    assert_int_equal(store_pages(store)->lost, 0);
    int64_t newest = stores_newest(store, SIZE);
    if (newest < told)
        fail_msg("%s: %lld was committed, %lld is the newest", name, (long long)told,
                 (long long)newest);
    assert_int_equal(store_manifests(store, &all, NULL, &err), 0);
    for (size_t i = 0; i < all.n; i++) {
        struct checkpoint *c;
        if (checkpoint_open(store, all.items[i].step, &c, NULL, &err) ||
            stores_compare(c, SIZE, &err))
            fail_msg("%s", err.text);
        checkpoint_close(c);
    }
    manifests_release(&all);
    store_close(store);
    return newest;
}

static void a_writer_may_be_killed_at_any_moment(void **state)
{
    const char *many = getenv("STORE_KILLS");
    int64_t saved = -1, copied = -1, next = 10;
    uint64_t random = 1;
    (void)state;
    for (int i = 0, n = many ? atoi(many) : 150; i < n; i++) {
        cycle(next, unit_random(&random), &saved, &copied);
        saved = check(path, saved);
        copied = check(copy_path, copied);
        next = saved < 10 ? 10 : saved + 1;
    }
    assert_true(saved > 20); /* some writers had time for a save */
    print_message("%lld steps were saved\n", (long long)saved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_writer_may_be_killed_at_any_moment, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
