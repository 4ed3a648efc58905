/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "lib/unit.h"
#include "ps/containers.h"
#include "ps/saves.h"
#include "ps/snapshot.h"

#define SHARDS 2

static char folder[64];

static int enter_folder(void **unused)
{
    (void)unused;
    snprintf(folder, sizeof folder, "/tmp/tf-saves-XXXXXX");
    return !mkdtemp(folder);
}

static int leave_folder(void **unused)
{
    char command[128];
    (void)unused;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static const char *at(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static bool exists(const char *name)
{
    return !access(at(name), F_OK);
}

static void put(struct variable_store *store, const char *name, int64_t value)
{
    struct error err = ERROR_INIT;
    struct variable like = {.container = "default", .name = name, .type = INT64}, *variable;
    struct tensor t = tensor_borrow(INT64, &like.shape, &value);
    assert_int_equal(variable_store_get(store, &like, &variable, &err), 0);
    assert_int_equal(containers_put(store, "default", name, 1, &t, &err), 0);
}

static int64_t get(struct variable_store *store, const char *name)
{
    struct error err = ERROR_INIT;
    struct tensor t = TENSOR_INIT;
    if (containers_get(store, "default", name, 1, &t, &err))
        fail_msg("%s", err.text);
    int64_t value = *(int64_t *)t.data;
    tensor_release(&t);
    return value;
}

/* Shard i of a job at a step: v = 10 * step + i. */
static int write_shard(const char *part, int i, int64_t step, struct manifest *manifest,
                       struct error *err)
{
    struct variable_store *store = variable_store_new();
    struct snapshot *snapshot;
    struct manifest_file file;
    char name[32];
    snprintf(name, sizeof name, "ps-%d.ckpt", i);
    put(store, "v", 10 * step + i);
    int code = snapshot_take(store, step, 1, &snapshot, err);
    if (!code)
        code = snapshot_write(snapshot, part, name, &file, err);
    if (!code) {
        manifest_add_file(manifest, name, file.bytes, file.digest);
        snapshot_free(snapshot);
    }
    variable_store_free(store);
    return code;
}

/* What a job does to save. */
static int save(const char *where, int64_t step, int keep, struct error *err)
{
    struct saves saves;
    struct manifest manifest = {.step = step};
    char *part = NULL;
    if (saves_open(&saves, where, err))
        return err->code;
    int code = saves_begin(&saves, step, &part, err);
    for (int i = 0; !code && i < SHARDS; i++)
        code = write_shard(part, i, step, &manifest, err);
    if (!code) {
        manifest_add_pushes(&manifest, "worker:0", step);
        code = saves_commit(&saves, part, &manifest, keep, err);
    }
    if (code && part)
        saves_abandon(part);
    mem_free(part);
    manifest_release(&manifest);
    saves_close(&saves);
    return code;
}

static void must_save(int64_t step, int keep)
{
    struct error err = ERROR_INIT;
    if (save(folder, step, keep, &err))
        fail_msg("%s", err.text);
}

/* Reads the newest checkpoint back into shards: its step, having looked at all values. */
static int64_t restored_step(struct saves_skipped *skipped)
{
    struct manifest manifest = {0};
    struct error err = ERROR_INIT;
    char *path;
    if (saves_find(folder, -1, skipped, &manifest, &path, &err)) {
        manifest_release(&manifest);
        assert_int_equal(err.code, ERR_NOINPUT);
        return -1;
    }
    int64_t step = manifest.step;
    assert_int_equal(manifest.files.n, SHARDS);
    for (int i = 0; i < SHARDS; i++) {
        struct variable_store *store = variable_store_new();
        char file[256];
        snprintf(file, sizeof file, "%s/%s", path, manifest.files.items[i].name);
        if (snapshot_restore(store, NULL, file, 1, &err))
            fail_msg("%s", err.text);
        assert_int_equal(get(store, "v"), 10 * step + i);
        variable_store_free(store);
    }
    mem_free(path);
    manifest_release(&manifest);
    return step;
}

static void what_was_saved_is_restored(void **unused)
{
    (void)unused;
    struct manifest manifest = {0};
    struct error err = ERROR_INIT;
    char *path;
    assert_int_equal(restored_step(NULL), -1);
    must_save(100, 5);
    must_save(200, 5);
    assert_int_equal(restored_step(NULL), 200);
    assert_int_equal(saves_find(folder, 100, NULL, &manifest, &path, &err), 0);
    assert_int_equal(manifest.step, 100);
    assert_int_equal(manifest.pushes.n, 1);
    assert_string_equal(manifest.pushes.items[0].worker, "worker:0");
    assert_int_equal(manifest.pushes.items[0].count, 100);
    manifest_release(&manifest);
    mem_free(path);
    char wanted[128];
    snprintf(wanted, sizeof wanted, "%s: no intact checkpoint of step 150", folder);
    struct manifest none = {0};
    unit_assert_error(saves_find(folder, 150, NULL, &none, &path, &err), err, ERR_NOINPUT, wanted);
    manifest_release(&none);
}

static void old_ones_are_removed_and_equal_ones_replaced(void **unused)
{
    (void)unused;
    for (int step = 1; step <= 7; step++)
        must_save(step * 100, 3);
    assert_true(exists("500") && exists("600") && exists("700"));
    assert_false(exists("400") || exists("100"));
    must_save(700, 3); /* repeated after a fall back */
    assert_int_equal(restored_step(NULL), 700);
    assert_false(exists("700.part"));
    assert_true(exists("500"));
}

static void a_restore_takes_all_back(void **unused)
{
    (void)unused;
    struct variable_store *store = variable_store_new();
    struct snapshot *snapshot;
    struct manifest_file file;
    struct error err = ERROR_INIT;
    struct tensor t = TENSOR_INIT;
    put(store, "v", 1);
    put(store, "v", 2);
    assert_int_equal(snapshot_take(store, 7, 1, &snapshot, &err), 0);
    put(store, "v", 3); /* what is written is what was when the snapshot was taken */
    put(store, "later", 4);
    assert_int_equal(snapshot_write(snapshot, folder, "a", &file, &err), 0);
    snapshot_free(snapshot);
    assert_int_equal(snapshot_restore(store, NULL, at("a"), 1, &err), 0);
    assert_int_equal(get(store, "v"), 2);
    assert_int_equal(variable_store_find(store, "default", "v")->updates, 2);
    unit_assert_error(containers_get(store, "default", "later", 1, &t, &err), err, ERR_NOINPUT,
                      "variable 'later' is not initialized");
    variable_store_free(store);
}

/* ---- damage ---- */

struct told {
    struct saves_skipped skipped;
    int n;
    char last[512];
};

static void tell(struct saves_skipped *skipped, const char *why)
{
    struct told *told = (struct told *)skipped;
    told->n++;
    snprintf(told->last, sizeof told->last, "%s", why);
}

static void flip(const char *name, off_t offset)
{
    unsigned char byte;
    int fd = open(at(name), O_RDWR);
    assert_int_equal(pread(fd, &byte, 1, offset), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, offset), 1);
    close(fd);
}

/* Every byte of every file of the newest: the one before is taken, and the reason is told. */
static void damage_falls_back(void **unused)
{
    (void)unused;
    static const char *const files[] = {"2/ps-0.ckpt", "2/ps-1.ckpt", "2/manifest"};
    must_save(1, 5);
    must_save(2, 5);
    for (int f = 0; f < 3; f++) {
        struct stat status;
        assert_int_equal(stat(at(files[f]), &status), 0);
        for (off_t offset = 0; offset < status.st_size; offset++) {
            struct told told = {.skipped.tell = tell};
            flip(files[f], offset);
            assert_int_equal(restored_step(&told.skipped), 1);
            assert_int_equal(told.n, 1);
            assert_non_null(strstr(told.last, files[f]));
            flip(files[f], offset);
        }
    }
    assert_int_equal(restored_step(NULL), 2);
    assert_int_equal(truncate(at("2/ps-1.ckpt"), 100), 0);
    struct told told = {.skipped.tell = tell};
    assert_int_equal(restored_step(&told.skipped), 1);
    assert_non_null(strstr(told.last, "2/ps-1.ckpt: has 100 bytes of "));
}

static void one_saves_at_a_time(void **unused)
{
    (void)unused;
    struct saves saves;
    struct error err = ERROR_INIT;
    char wanted[128];
    assert_int_equal(saves_open(&saves, folder, &err), 0);
    snprintf(wanted, sizeof wanted, "%s: another process saves there", folder);
    unit_assert_error(save(folder, 1, 5, &err), err, ERR_RETRY, wanted);
    saves_close(&saves);
    must_save(1, 5);
}

/* ---- a save that is killed, or finds the disk full ---- */

/* Runs `save` in a child that is killed at its n-th system call. False: it ended before. */
static bool killed_at(int n, int64_t step)
{
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        struct error err = ERROR_INIT;
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        _exit(save(folder, step, 2, &err));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSTOPPED(status));
    ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD));
    for (int stops = 0; stops < n; stops++) { /* at each entry and each exit */
        ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status)) {
            assert_int_equal(WEXITSTATUS(status), 0);
            return false;
        }
    }
    kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) == pid && !WIFEXITED(status) && !WIFSIGNALED(status))
        ;
    return true;
}

static bool can_trace(void)
{
    int status;
    pid_t pid = fork();
    if (!pid)
        _exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) ? 1 : 0);
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

/* The newest is the one before or the new one, and once it was the new one it stays so. */
static void killed_at_every_system_call(void **unused)
{
    (void)unused;
    if (!can_trace())
        skip();
    must_save(1, 2);
    must_save(2, 2);
    int64_t newest = 2;
    int n = 0, at_new = 0;
    while (killed_at(++n, 3)) {
        int64_t step = restored_step(NULL);
        assert_true(step == 2 || step == 3);
        newest = step > newest ? step : newest;
        at_new += step == 3;
        assert_true(step == newest);
    }
    print_message("# killed at %d places, %d of them after the commit\n", n - 1, at_new);
    assert_true(n > 40);
    assert_int_equal(restored_step(NULL), 3);
    assert_false(exists("3.part"));
}

static void a_full_disk_keeps_what_was_there(void **unused)
{
    (void)unused;
    must_save(1, 5);
    int codes[2] = {0};
    for (long limit = 0; limit < 2000; limit += 50) {
        int status;
        pid_t pid = fork();
        if (!pid) {
            struct error err = ERROR_INIT;
            struct rlimit size = {(rlim_t)limit, (rlim_t)limit};
            signal(SIGXFSZ, SIG_IGN);
            setrlimit(RLIMIT_FSIZE, &size);
            _exit(save(folder, 2, 5, &err));
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_true(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == ERR_IO);
        codes[WEXITSTATUS(status) != 0]++;
        assert_int_equal(restored_step(NULL), WEXITSTATUS(status) ? 1 : 2);
        assert_false(exists("2.part"));
        if (!WEXITSTATUS(status))
            break;
    }
    assert_true(codes[0] == 1 && codes[1] > 3);
}

#define in_folder(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_folder(what_was_saved_is_restored),
        in_folder(old_ones_are_removed_and_equal_ones_replaced),
        in_folder(a_restore_takes_all_back),
        in_folder(damage_falls_back),
        in_folder(one_saves_at_a_time),
        in_folder(killed_at_every_system_call),
        in_folder(a_full_disk_keeps_what_was_there),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
