/* SPDX-License-Identifier: Apache-2.0
 *
 * The meta pages of a store: whichever bit of them is flipped, the newest checkpoint is read as it
 * was saved, or the damage is reported and a repair brings the checkpoint back. Each attempt is a
 * process of its own, so that a crash is noticed.
 *
 * STORE_META=all: all bits of both pages, of three stores. By default only the bits of the commits'
 * numbers and a sample of the others.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "checkpoint/store/committed.h"
#include "checkpoint/store/maintain.h"
#include "lib/deeds.h"
#include "lib/stores.h"

#define SIZE 3000 /* floats: three pages */
#define PAGE 4096
#define NUMBER_AT 144 /* of the commit, in a meta page */
#define SAMPLE 41

enum { EXACT, SAID, WRONG };

static char folder[STORES_PATH_BYTES], path[STORES_PATH_BYTES + 16], data[STORES_PATH_BYTES + 32];
static int64_t newest;

static struct file { /* as it was before */
    char name[STORES_PATH_BYTES + 32];
    char *bytes;
    size_t n;
} files[2];

static int group_setup(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s", stores_folder());
    snprintf(path, sizeof path, "%s/store", folder);
    snprintf(data, sizeof data, "%s/data.mdb", path);
    return 0;
}

static int group_teardown(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        free(files[i].bytes);
    stores_remove(folder);
    return 0;
}

static void keep(struct file *file, const char *name)
{
    struct stat status;
    snprintf(file->name, sizeof file->name, "%s/%s", path, name);
    FILE *f = fopen(file->name, "rb");
    assert_non_null(f);
    assert_int_equal(fstat(fileno(f), &status), 0);
    file->n = (size_t)status.st_size;
    free(file->bytes);
    file->bytes = malloc(file->n);
    assert_int_equal(fread(file->bytes, 1, file->n, f), file->n);
    fclose(f);
}

static void put_back(const struct file *file)
{
    int fd = open(file->name, O_WRONLY | O_TRUNC);
    assert_int_equal(write(fd, file->bytes, file->n), file->n);
    close(fd);
}

/* Saves steps up to `last`; one is forgotten and pruned, perhaps in the last commit. */
static void make_store(int64_t last, bool ends_with_prune)
{
    struct error err = ERROR_INIT;
    struct prune_report report;
    stores_remove(path);
    assert_int_equal(store_create(path, &err), 0);
    struct store *store = stores_open(path, true);
    for (int64_t step = 1; step <= last; step++) {
        stores_must_save(store, step, SIZE);
        if (step != (ends_with_prune ? last : 2))
            continue;
        assert_int_equal(store_forget(store, (int64_t[]){1}, 1, &err), 0);
        assert_int_equal(store_prune(store, false, NULL, &report, &err), 0);
    }
    store_close(store);
    newest = last;
    keep(&files[0], "data.mdb");
    keep(&files[1], COMMITTED_FILE);
}

static void flip(int64_t bit)
{
    int fd = open(data, O_RDWR);
    char byte;
    assert_int_equal(pread(fd, &byte, 1, bit / 8), 1);
    byte = (char)(byte ^ 1 << bit % 8);
    assert_int_equal(pwrite(fd, &byte, 1, bit / 8), 1);
    close(fd);
}

/* ---- in a process of its own ---- */

static int read_newest(struct store *store, int64_t step)
{
    struct checkpoint *c;
    struct error err = ERROR_INIT, passed_over = ERROR_INIT;
    if (checkpoint_open(store, CHECKPOINT_NEWEST, &c, &passed_over, &err))
        return err.code == ERR_DATA ? SAID : WRONG;
    int result = c->manifest.step == step && !stores_compare(c, SIZE, &err) ? EXACT : WRONG;
    if (result == EXACT || c->manifest.step != step)
        result = passed_over.code ? SAID : result;
    checkpoint_close(c);
    return result;
}

/* A forgotten checkpoint must not come back, either. */
static bool has_forgotten(struct store *store)
{
    struct checkpoint *c;
    struct error err = ERROR_INIT;
    if (checkpoint_open(store, 1, &c, NULL, &err))
        return false;
    checkpoint_close(c);
    return true;
}

static int look(void)
{
    struct store *store;
    struct error err = ERROR_INIT;
    if (store_open(path, NULL, &store, &err))
        return err.code == ERR_DATA || err.code == ERR_PROTOCOL ? SAID : WRONG;
    int result = read_newest(store, newest);
    if (result == EXACT && has_forgotten(store))
        result = WRONG;
    store_close(store);
    return result;
}

/* Nothing is saved on top of an older commit; otherwise the next checkpoint is the newest. */
static int write_next(int result)
{
    const struct store_options options = {.write = true, .owner = "test"};
    struct store *store;
    struct error err = ERROR_INIT;
    if (store_open(path, &options, &store, &err))
        return result == SAID ? SAID : WRONG;
    if (result == SAID || stores_save(store, newest + 1, SIZE, NULL, &err) ||
        read_newest(store, newest + 1) != EXACT)
        return WRONG;
    store_close(store);
    return EXACT;
}

static void ignore(void *context, const char *line)
{
    (void)context, (void)line;
}

static int repair(void)
{
    const struct store_options options = {.owner = "test"};
    struct error err = ERROR_INIT;
    return store_repair(path, &options, ignore, NULL, &err) ? WRONG : look();
}

static int work(bool writes)
{
    int result = look();
    if (writes)
        return write_next(result);
    if (result == SAID && repair() != EXACT)
        return WRONG;
    return result;
}

/* ---- all bits ---- */

static int attempt(int64_t bit, bool writes)
{
    int status;
    flip(bit);
    pid_t child = fork();
    if (!child)
        _exit(work(writes));
    assert_true(child > 0);
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) >= WRONG)
        fail_msg("bit %d of byte %lld of meta page %lld, %s: status %#x", (int)(bit % 8),
                 (long long)(bit / 8 % PAGE), (long long)(bit / 8 / PAGE),
                 writes ? "writing" : "reading", status);
    if (writes || WEXITSTATUS(status) == SAID)
        for (int i = 0; i < 2; i++)
            put_back(&files[i]);
    else
        flip(bit);
    return WEXITSTATUS(status);
}

static bool tries_all(void)
{
    const char *which = getenv("STORE_META");
    return which && !strcmp(which, "all");
}

static bool is_wanted(int64_t bit)
{
    int64_t at = bit / 8 % PAGE;
    return tries_all() || (at >= NUMBER_AT && bit % 64 < 8) || bit % SAMPLE == 0;
}

/* Flips the unused bits of a page, which change nothing: one process for all of them. */
static int64_t try_rest(int64_t page)
{
    int status;
    pid_t child = fork();
    if (!child) {
        for (int64_t bit = (page * PAGE + PAGES_META_BYTES) * 8; bit < (page + 1) * PAGE * 8;
             bit++) {
            flip(bit);
            if (look() != EXACT)
                _exit(WRONG);
            flip(bit);
        }
        _exit(EXACT);
    }
    assert_true(child > 0);
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    return (PAGE - PAGES_META_BYTES) * 8;
}

static void try_all_bits(void)
{
    int64_t counts[2] = {0}, tried = 0;
    for (int64_t page = 0; page < 2; page++) {
        for (int64_t at = 0; at < PAGES_META_BYTES * 8; at++) {
            int64_t bit = page * PAGE * 8 + at;
            if (!is_wanted(bit))
                continue;
            counts[attempt(bit, false)]++;
            if (tried++ % 7 == 0 || at / 8 >= NUMBER_AT)
                attempt(bit, true);
        }
        int64_t rest = tries_all() ? try_rest(page) : 0;
        counts[EXACT] += rest;
        tried += rest;
    }
    print_message("%lld bits: %lld exact, %lld said and repaired\n", (long long)tried,
                  (long long)counts[EXACT], (long long)counts[SAID]);
    assert_true(counts[EXACT] && counts[SAID]);
}

static void no_bit_of_a_meta_page_hides_the_newest(void **state)
{
    static const struct {
        int64_t last;
        bool ends_with_prune;
    } stores[] = {{3, false}, {6, false}, {5, true}};
    (void)state;
    for (size_t i = 0; i < sizeof stores / sizeof *stores; i++) {
        make_store(stores[i].last, stores[i].ends_with_prune);
        try_all_bits();
    }
}

/* ---- the note of the last commit, and the file ---- */

static void write_note(const struct commit_note *note)
{
    struct error err = ERROR_INIT;
    int fd;
    assert_int_equal(committed_open(path, true, &fd, &err), 0);
    assert_int_equal(committed_clear(fd, &err), 0);
    assert_int_equal(committed_write(fd, note, &err), 0);
    close(fd);
}

static void read_note(struct commit_note *note)
{
    struct error err = ERROR_INIT;
    int fd;
    bool is_there = !committed_open(path, false, &fd, &err);
    assert_true(is_there && !committed_read(fd, note, &is_there, &err) && is_there);
    close(fd);
}

static void a_note_that_is_behind_is_of_a_kill(void **state)
{
    struct commit_note note;
    struct error err = ERROR_INIT;
    (void)state;
    make_store(3, false);
    read_note(&note);
    struct store *store = stores_open(path, true);
    stores_must_save(store, 4, SIZE);
    store_close(store);
    write_note(&note);
    store = stores_open(path, true);
    assert_int_equal(store_rolled_back(store)->code, 0);
    assert_int_equal(stores_newest(store, SIZE), 4);
    store_close(store);
    for (int i = 0; i < 2; i++) { /* no note, or a damaged one */
        char file[STORES_PATH_BYTES + 32];
        snprintf(file, sizeof file, "%s/" COMMITTED_FILE, path);
        assert_int_equal(i ? truncate(file, 100) : unlink(file), 0);
        store = stores_open(path, true);
        assert_int_equal(stores_newest(store, SIZE), 4);
        assert_int_equal(store_forget(store, (int64_t[]){9}, 1, &err), 0);
        store_close(store);
        read_note(&note);
        assert_int_equal(note.head.step, 4);
    }
}

/* A file restored from a backup: the commits after it are lost, and the store accepts that. */
static void a_note_that_is_ahead_is_a_rollback(void **state)
{
    const struct store_options options = {.write = true, .owner = "test"};
    struct error err = ERROR_INIT;
    struct checkpoint *c;
    (void)state;
    make_store(3, false);
    struct store *store = stores_open(path, true);
    for (int64_t step = 4; step < 8; step++)
        stores_must_save(store, step, SIZE);
    store_close(store);
    put_back(&files[0]);
    newest = 7;
    assert_int_equal(look(), SAID);
    assert_int_equal(store_open(path, &options, &store, &err), ERR_DATA);
    assert_non_null(strstr(err.text, "the last one was "));
    assert_non_null(strstr(err.text, "step 7; tf-ckpt repair"));
    store = stores_open(path, false);
    assert_int_equal(checkpoint_open(store, 7, &c, NULL, &err), ERR_DATA);
    store_close(store);
    newest = 3;
    assert_int_equal(repair(), EXACT);
    store = stores_open(path, true);
    stores_must_save(store, 4, SIZE);
    store_close(store);
}

/* ---- a repair that was killed can be done again ---- */

#define BEFORE_AT 145 /* of the commit's number: makes an older commit the newest */

static int mend(void *context)
{
    const struct store_options options = {.owner = "test"};
    struct error err = ERROR_INIT;
    (void)context;
    store_repair(path, &options, ignore, NULL, &err);
    return deed_tell(&err);
}

static void damage(void)
{
    for (int i = 0; i < 2; i++)
        put_back(&files[i]);
    flip(8 * BEFORE_AT);
    assert_int_equal(look(), SAID);
}

static bool check_mended(const struct deed *deed)
{
    (void)deed;
    assert_int_equal(repair(), EXACT);
    damage();
    return false;
}

static void a_repair_may_be_killed_at_any_system_call(void **state)
{
    static const struct deed deed = {"repair", mend, false};
    (void)state;
    if (SANITIZED || !traced_works())
        skip();
    deeds_begin();
    make_store(3, false);
    damage();
    deed_kill_all_along(&deed, tries_all() ? 1 : 7, check_mended);
    deeds_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_bit_of_a_meta_page_hides_the_newest),
        cmocka_unit_test(a_note_that_is_behind_is_of_a_kill),
        cmocka_unit_test(a_note_that_is_ahead_is_a_rollback),
        cmocka_unit_test(a_repair_may_be_killed_at_any_system_call),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
