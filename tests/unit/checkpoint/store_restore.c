/* SPDX-License-Identifier: Apache-2.0
 *
 * A restore in which each system call fails once, from a store of one process and from one of two
 * shards, for all kinds of readers: it finds the newest checkpoint, or reports the error. It never
 * returns an older checkpoint, and never reports damage, as there is none.
 */
#include <sys/resource.h>

#include "checkpoint/store/verify.h"
#include "lib/deeds.h"
#include "lib/stores.h"

#define NEWEST 3
#define SIZE 1000
#define N_SHARDS 2

static char path[STORES_PATH_BYTES + 16];
static int64_t *found; /* the step that the child restored; in shared memory */

static const char *const shards[N_SHARDS] = {"ps-0", "ps-1"};

/* ---- the readers: each is run by a child process ---- */

static int read_newest(void *context)
{
    struct error err = ERROR_INIT, passed_over = ERROR_INIT;
    struct checkpoint *c;
    struct store *store;
    (void)context;
    if (store_open(path, NULL, &store, &err))
        return deed_tell(&err);
    if (!checkpoint_open(store, CHECKPOINT_NEWEST, &c, &passed_over, &err) &&
        !checkpoint_check_all(c, &err))
        *found = passed_over.code ? -2 : c->manifest.step;
    return deed_tell(&err);
}

static void complain(struct checkpoint_listener *skipped, const char *why)
{
    (void)skipped, (void)why;
    *found = -2;
}

static int read_intact(void *context)
{
    struct checkpoint_listener skipped = {.tell = complain};
    struct error err = ERROR_INIT;
    struct checkpoint *c;
    struct store *store;
    (void)context;
    if (store_open(path, NULL, &store, &err))
        return deed_tell(&err);
    if (!checkpoint_open_intact(store, CHECKPOINT_NEWEST, &skipped, &c, &err) && *found != -2)
        *found = c->manifest.step;
    return deed_tell(&err);
}

static int verify(void *context)
{
    const struct verify_request request = {.fraction = 1};
    struct verify_report report;
    struct error err = ERROR_INIT;
    struct store *store;
    (void)context;
    if (store_open(path, NULL, &store, &err))
        return deed_tell(&err);
    if (!store_verify(store, &request, &report, &err))
        *found = report.problems.n ? -2 : report.newest_intact;
    return deed_tell(&err);
}

static int take_over(void *context)
{
    const struct store_options options = {.write = true, .owner = "test"};
    struct error err = ERROR_INIT;
    int64_t generation;
    return store_take_over(path, &options, NULL, &generation, &err) ? deed_tell(&err)
                                                                    : read_intact(context);
}

static int next_step(void *context)
{
    struct error err = ERROR_INIT;
    struct store *store;
    int64_t step;
    (void)context;
    if (store_open(path, NULL, &store, &err))
        return deed_tell(&err);
    if (!store_next_step(store, &step, &err))
        *found = step - 1;
    return deed_tell(&err);
}

static const struct {
    const char *name;
    int (*work)(void *context);
} readers[] = {{"the newest", read_newest},
               {"the newest that is intact", read_intact},
               {"verify", verify},
               {"a resume", take_over},
               {"the step after the newest", next_step}};

/* ---- the stores ---- */

static int setup(void **state)
{
    struct error err = ERROR_INIT;
    deeds_begin();
    found = mmap(NULL, sizeof *found, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(found, MAP_FAILED);
    *state = (void *)(uintptr_t)stores_folder();
    snprintf(path, sizeof path, "%s/store", (char *)*state);
    if (store_create(path, &err))
        fail_msg("%s", err.text);
    return 0;
}

static int teardown(void **state)
{
    munmap(found, sizeof *found);
    deeds_end();
    stores_remove(*state);
    return 0;
}

static void save_shard(int64_t step, int shard)
{
    const struct store_options options = {.write = true, .owner = "test", .shard = shards[shard]};
    struct variable_record values[3];
    struct error err = ERROR_INIT;
    stores_values(values, 10 * step + shard, SIZE);
    const struct save_request request = {
        .step = step, .producer = "test", .tensors = values, .n_tensors = 3, .is_part = true};
    if (store_save_at(path, &options, &request, &err))
        fail_msg("%s", err.text);
    stores_release(values);
}

static void save_all_shards(struct store *store, int64_t step)
{
    const struct save_request request = {
        .step = step, .producer = "test", .shards = shards, .n_shards = N_SHARDS};
    struct error err = ERROR_INIT;
    for (int i = 0; i < N_SHARDS; i++)
        save_shard(step, i);
    if (store_save(store, &request, NULL, &err))
        fail_msg("%s", err.text);
}

static void fill(void (*save)(struct store *store, int64_t step))
{
    struct store *store = stores_open(path, true);
    for (int64_t step = 1; step <= NEWEST; step++)
        save(store, step);
    store_close(store);
}

static void save_whole(struct store *store, int64_t step)
{
    stores_must_save(store, step, SIZE);
}

/* ---- the sweep ---- */

#ifdef __x86_64__

static const long calls[] = {
    SYS_openat,   SYS_newfstatat, SYS_fstat,     SYS_stat,      SYS_pread64,   SYS_read,
    SYS_mmap,     SYS_fcntl,      SYS_flock,     SYS_fallocate, SYS_ftruncate, SYS_lseek,
    SYS_pwrite64, SYS_write,      SYS_fdatasync, SYS_msync,     SYS_getrandom, -1};

/* A failed call that does no harm is no error; otherwise the error has the code for the system's
 * errors, and the system's text. */
static bool is_right(int code, int error)
{
    if (!code)
        return *found == NEWEST;
    return *found != -2 && (code == ERR_IO || code == ERR_OS || code == ERR_DENIED) &&
           strstr(deed_news->err.text, strerror(error));
}

static void fail_each_call(const char *name, int (*work)(void *context), int error)
{
    int n = 1, failed = 0, code;
    for (*found = -1; (code = traced_fail(work, NULL, calls, n, error)) & TRACED_STRUCK; n++) {
        code &= ~TRACED_STRUCK;
        if (!is_right(code, error))
            fail_msg("%s: call %d: %s: %d, step %d: %s", name, n, strerror(error), code,
                     (int)*found, deed_news->err.text);
        failed += code != 0;
        *found = -1;
    }
    if (code || *found != NEWEST)
        fail_msg("%s: %d, step %d: %s", name, code, (int)*found, deed_news->err.text);
    print_message("%s: %d calls, %d of them errors when they fail with %s\n", name, n - 1, failed,
                  strerror(error));
    assert_true(failed > 3);
}

static void every_call_of_a_restore_may_fail(void (*save)(struct store *store, int64_t step))
{
    static const int errors[] = {EIO, EMFILE, ENOMEM, EACCES};
    if (SANITIZED || !traced_works())
        skip();
    fill(save);
    for (int sweep = 0; sweep < (deed_sweeps() > 1 ? 4 : 1); sweep++)
        for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
            fail_each_call(readers[i].name, readers[i].work, errors[(i + (size_t)sweep) % 4]);
}

static void of_one_process(void **state)
{
    (void)state;
    every_call_of_a_restore_may_fail(save_whole);
}

static void of_shards(void **state)
{
    (void)state;
    every_call_of_a_restore_may_fail(save_all_shards);
}

/* EMFILE, without a debugger: there is one shard more than descriptors. */
static void no_descriptor_is_no_damage(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct checkpoint *c;
    fill(save_all_shards);
    struct store *store = stores_open(path, false);
    struct rlimit before, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int next = dup(0);
    few = (struct rlimit){(rlim_t)next + 6, before.rlim_max};
    close(next);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    int code = checkpoint_open(store, CHECKPOINT_NEWEST, &c, NULL, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(code, ERR_OS);
    assert_null(strstr(err.text, "not complete"));
    store_close(store);
}

#else

static void of_one_process(void **state)
{
    (void)state;
    skip(); /* calls are changed on x86-64 only */
}

#define of_shards of_one_process
#define no_descriptor_is_no_damage of_one_process

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(of_one_process, setup, teardown),
        cmocka_unit_test_setup_teardown(of_shards, setup, teardown),
        cmocka_unit_test_setup_teardown(no_descriptor_is_no_damage, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
