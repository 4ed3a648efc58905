/* SPDX-License-Identifier: Apache-2.0
 *
 * kill -9 at every system call of a save, a forget, a prune, a copy and the making of a store, and
 * a failure of each call that reaches the disk: committed checkpoints restore exactly, nothing
 * stays locked, and the next save and prune work as if nothing had happened.
 *
 * STORE_SWEEPS: how often all of this is done, with other sizes each time (once by default).
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "checkpoint/store/maintain.h"
#include "lib/deeds.h"
#include "lib/stores.h"

#define OLD 2 /* the newest checkpoint before, and the one saved */
#define NEW 3
#define STEP(n) (1u << (n))
#define NAME_BYTES (STORES_PATH_BYTES + 32)

struct file {
    char name[NAME_BYTES];
    char *bytes;
    size_t n;
};

struct queue_hold { /* of a store */
    struct file data, committed;
    char lock[NAME_BYTES];
};

static char path[NAME_BYTES], copy_path[NAME_BYTES], new_path[NAME_BYTES];
static struct queue_hold stores[2]; /* as they are before */
static int64_t size;                /* floats of a checkpoint */

/* ---- the deeds: each is run by a child process ---- */

static int open_writing(const char *name, struct store **store, struct error *err)
{
    const struct store_options options = {.write = true, .owner = "test"};
    return store_open(name, &options, store, err);
}

static int save(void *context)
{
    struct store *store;
    struct error err = ERROR_INIT;
    (void)context;
    if (open_writing(path, &store, &err))
        return deed_tell(&err);
    if (!stores_save(store, NEW, size, NULL, &err))
        deed_done();
    store_close(store);
    return deed_tell(&err);
}

static int forget(void *context)
{
    struct store *store;
    struct error err = ERROR_INIT;
    (void)context;
    if (open_writing(path, &store, &err))
        return deed_tell(&err);
    store_forget(store, (int64_t[]){0}, 1, &err);
    store_close(store);
    return deed_tell(&err);
}

static int prune(void *context)
{
    struct prune_report report;
    struct store *store;
    struct error err = ERROR_INIT;
    (void)context;
    if (open_writing(path, &store, &err))
        return deed_tell(&err);
    store_prune(store, false, NULL, &report, &err); /* the chunks of step 1 */
    store_close(store);
    return deed_tell(&err);
}

static int copy(void *context)
{
    struct store *from, *to;
    struct checkpoint *c;
    struct error err = ERROR_INIT;
    (void)context;
    if (store_open(path, NULL, &from, &err))
        return deed_tell(&err);
    if (!open_writing(copy_path, &to, &err)) {
        if (!checkpoint_open(from, OLD, &c, NULL, &err)) {
            if (!checkpoint_copy(c, to, false, NULL, NULL, &err))
                deed_done();
            checkpoint_close(c);
        }
        store_close(to);
    }
    store_close(from);
    return deed_tell(&err);
}

static int make(void *context)
{
    struct error err = ERROR_INIT;
    (void)context;
    store_create(new_path, &err);
    return deed_tell(&err);
}

/* Makes a store in a folder that exists already. */
static int make_inside(void *context)
{
    mkdir(new_path, 0777);
    return make(context);
}

/* ---- before and after ---- */

static void keep_file(struct file *file, const char *store, const char *name)
{
    struct stat status;
    snprintf(file->name, sizeof file->name, "%.*s/%s", STORES_PATH_BYTES, store, name);
    assert_int_equal(stat(file->name, &status), 0);
    file->n = (size_t)status.st_size;
    file->bytes = malloc(file->n);
    FILE *f = fopen(file->name, "rb");
    assert_int_equal(fread(file->bytes, 1, file->n, f), file->n);
    fclose(f);
}

static void put_file_back(const struct file *file)
{
    int fd = open(file->name, O_WRONLY | O_TRUNC);
    assert_int_equal(write(fd, file->bytes, file->n), file->n);
    close(fd);
}

static void keep(struct queue_hold *kept, const char *store)
{
    snprintf(kept->lock, sizeof kept->lock, "%.*s/lock.mdb", STORES_PATH_BYTES, store);
    keep_file(&kept->data, store, "data.mdb");
    keep_file(&kept->committed, store, "committed");
}

/* Also restores the table of readers, which is made anew. */
static void put_back(const struct queue_hold *kept)
{
    unlink(kept->lock);
    put_file_back(&kept->data);
    put_file_back(&kept->committed);
}

static int setup(void **state)
{
    struct error err = ERROR_INIT;
    deeds_begin();
    *state = (void *)(uintptr_t)stores_folder();
    snprintf(path, sizeof path, "%s/store", (char *)*state);
    snprintf(copy_path, sizeof copy_path, "%s/copy", (char *)*state);
    snprintf(new_path, sizeof new_path, "%s/new", (char *)*state);
    if (store_create(path, &err) || store_create(copy_path, &err))
        fail_msg("%s", err.text);
    return 0;
}

static int teardown(void **state)
{
    deeds_end();
    stores_remove(*state);
    return 0;
}

/* Saves steps 0 to 2 and forgets step 1, whose chunks wait for a prune. */
static void fill(void)
{
    struct error err = ERROR_INIT;
    struct store *store = stores_open(path, true);
    for (int64_t step = 0; step <= OLD; step++)
        stores_must_save(store, step, size);
    assert_int_equal(store_forget(store, (int64_t[]){1}, 1, &err), 0);
    store_close(store);
    store = stores_open(copy_path, true);
    stores_must_save(store, 0, size);
    store_close(store);
    keep(&stores[0], path);
    keep(&stores[1], copy_path);
}

static void empty(void **state)
{
    for (int i = 0; i < 2; i++) {
        free(stores[i].data.bytes);
        free(stores[i].committed.bytes);
    }
    teardown(state);
    setup(state);
}

/* Returns a bit for each step that is there, after checking its values. */
static unsigned compare_all(struct store *store)
{
    struct error err = ERROR_INIT, damaged = ERROR_INIT;
    unsigned steps = 0;
    manifest_vec all;
    assert_int_equal(store_manifests(store, &all, &damaged, &err), 0);
    assert_int_equal(damaged.code, 0);
    for (size_t i = 0; i < all.n; i++) {
        struct checkpoint *c;
        if (checkpoint_open(store, all.items[i].step, &c, NULL, &err) ||
            stores_compare(c, size, &err))
            fail_msg("%s", err.text);
        checkpoint_close(c);
        steps |= STEP(all.items[i].step);
    }
    manifests_release(&all);
    return steps;
}

/* Opens without waiting for a lock. Returns the steps that are there, after checking their values
 * and saving another one beside them. */
static unsigned check(const char *name)
{
    struct prune_report report;
    struct error err = ERROR_INIT;
    struct store *store = stores_open(name, true);
    assert_int_equal(store_pages(store)->lost, 0);
    unsigned steps = compare_all(store);
    stores_must_save(store, NEW + 1, size);
    assert_int_equal(store_prune(store, false, NULL, &report, &err), 0);
    assert_int_equal(stores_newest(store, size), NEW + 1);
    store_close(store);
    store = stores_open(name, false);
    assert_int_equal(store_pages(store)->lost, 0);
    assert_int_equal(compare_all(store), steps | STEP(NEW + 1));
    store_close(store);
    return steps;
}

/* The deed's change is there or not; everything else is as it was. */
static bool check_both(const struct deed *deed)
{
    const unsigned before = STEP(0) | STEP(OLD), there = check(path), copied = check(copy_path);
    const unsigned after = deed->work == save     ? before | STEP(NEW)
                           : deed->work == forget ? STEP(OLD)
                                                  : before;
    const unsigned copy_after = deed->work == copy ? before : STEP(0);
    assert_true(there == before || there == after);
    assert_true(copied == STEP(0) || copied == copy_after);
    return there != before || copied != STEP(0);
}

static void check_new(void)
{
    struct error err = ERROR_INIT;
    char command[NAME_BYTES + 16];
    if (store_ensure(new_path, &err))
        fail_msg("%s", err.text);
    struct store *store = stores_open(new_path, true);
    stores_must_save(store, 1, 10);
    store_close(store);
    snprintf(command, sizeof command, "rm -rf '%s'", new_path);
    assert_int_equal(system(command), 0);
}

/* ---- the sweeps ---- */

static const struct deed deeds[] = {{"save", save, true},    {"forget", forget, false},
                                    {"prune", prune, false}, {"copy", copy, true},
                                    {"make", make, false},   {"make inside", make_inside, false}};

static bool check_after(const struct deed *deed)
{
    if (deed->work == make || deed->work == make_inside) {
        check_new();
        return false;
    }
    bool changed = check_both(deed);
    put_back(&stores[0]);
    put_back(&stores[1]);
    return changed;
}

/* A killed process shows a sanitizer nothing, and takes ten times as long under it. */
static void killed_at_every_system_call(void **state)
{
    if (SANITIZED || !traced_works())
        skip();
    for (int sweep = 0; sweep < deed_sweeps(); sweep++) {
        size = sweep % 2 ? 300000 + 4099 * sweep : 10000 + 4099 * sweep;
        fill();
        for (size_t i = 0; i < sizeof deeds / sizeof *deeds; i++)
            deed_kill_all_along(&deeds[i], 1, check_after);
        empty(state);
    }
}

#ifdef __x86_64__

static void every_call_may_fail(void **state)
{
    static const int errors[] = {EIO, ENOSPC, EACCES};
    if (!traced_works())
        skip();
    for (int sweep = 0; sweep < deed_sweeps(); sweep++) {
        size = sweep % 2 ? 270000 + 4099 * sweep : 10000 + 4099 * sweep;
        fill();
        for (size_t i = 0; i < sizeof deeds / sizeof *deeds; i++)
            deed_fail_all_along(&deeds[i], errors[(sweep + i) % 3], 1, check_after);
        empty(state);
    }
}

#else

static void every_call_may_fail(void **state)
{
    (void)state;
    skip(); /* calls are changed on x86-64 only */
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(killed_at_every_system_call, setup, teardown),
        cmocka_unit_test_setup_teardown(every_call_may_fail, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
