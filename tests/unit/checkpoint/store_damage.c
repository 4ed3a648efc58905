/* SPDX-License-Identifier: Apache-2.0
 *
 * Damage: whichever bit of a store is flipped and wherever its file is cut, a read returns what was
 * saved, or an error. Each attempt is a process of its own, so that a crash is noticed.
 *
 * STORE_DAMAGES: how many bits are flipped, round the pages (a sample by default).
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "checkpoint/store/maintain.h"
#include "checkpoint/store/verify.h"
#include "lib/stores.h"

#define SIZE 6000 /* floats: six pages */
#define STEPS 12
#define PAGE 4096

enum { EXACT = 0, REFUSED = 1, OLDER = 2, WRONG = 3 };

static char path[STORES_PATH_BYTES + 16], file[STORES_PATH_BYTES + 32],
    committed[STORES_PATH_BYTES + 32];
static char *sound; /* the file's bytes */
static size_t sound_bytes;
static char sound_committed[8192];
static size_t used;                 /* number of its pages */
static size_t trees[1024], n_trees; /* those that hold keys, and the meta pages */

/* Saves checkpoints, two of which are forgotten and pruned, so that pages of every kind exist. A
 * few hundred small tensors make the tree deep. */
static void fill(struct store *store)
{
    struct error err = ERROR_INIT;
    struct prune_report report;
    struct variable_record *small = calloc(300, sizeof *small);
    for (int64_t step = 1; step <= STEPS; step++)
        stores_must_save(store, step, SIZE);
    for (int i = 0; i < 300; i++) {
        char *name = malloc(16);
        snprintf(name, 16, "small-%d", i);
        small[i] = (struct variable_record){.container = "default", .name = name};
        assert_int_equal(tensor_alloc(&small[i].value, INT64, &SHAPE_SCALAR, &err), 0);
        *(int64_t *)small[i].value.data = i;
    }
    struct save_request request = {.step = 0, .producer = "", .tensors = small, .n_tensors = 300};
    assert_int_equal(store_save(store, &request, NULL, &err), 0);
    for (int i = 0; i < 300; i++) {
        free((void *)(uintptr_t)small[i].name);
        tensor_release(&small[i].value);
    }
    free(small);
    stores_must_save(store, STEPS + 1, SIZE);
    assert_int_equal(store_forget(store, (int64_t[]){1, 3}, 2, &err), 0);
    assert_int_equal(store_prune(store, false, NULL, &report, &err), 0);
    stores_must_save(store, STEPS + 2, SIZE / 2);
}

/* Flags 1 and 2 are branches and leaves, 8 the meta pages; free pages can look like these, too. */
static void find_trees(void)
{
    for (size_t page = 0; page < used && n_trees < 1024; page++) {
        uint64_t number;
        uint16_t flags;
        memcpy(&number, sound + page * PAGE, sizeof number);
        memcpy(&flags, sound + page * PAGE + 10, sizeof flags);
        if (number == page && (flags == 1 || flags == 2 || flags == 8))
            trees[n_trees++] = page;
    }
    assert_true(n_trees > 8);
}

static int group_setup(void **state)
{
    struct error err = ERROR_INIT;
    struct stat status;
    struct pages_meta meta;
    *state = (void *)(uintptr_t)stores_folder();
    snprintf(path, sizeof path, "%s/store", (char *)*state);
    snprintf(file, sizeof file, "%s/data.mdb", path);
    if (store_create(path, &err))
        fail_msg("%s", err.text);
    struct store *store = stores_open(path, true);
    fill(store);
    store_close(store);
    snprintf(committed, sizeof committed, "%s/committed", path);
    FILE *note = fopen(committed, "rb");
    assert_int_equal(fread(sound_committed, 1, sizeof sound_committed, note),
                     sizeof sound_committed);
    fclose(note);
    assert_int_equal(stat(file, &status), 0);
    sound_bytes = (size_t)status.st_size;
    int fd = open(file, O_RDONLY);
    assert_int_equal(pages_read_meta(fd, PAGES_NONE, &meta, &err), 0);
    close(fd);
    used = (size_t)meta.last_page + 1;
    sound = malloc(sound_bytes);
    FILE *f = fopen(file, "rb");
    assert_int_equal(fread(sound, 1, sound_bytes, f), sound_bytes);
    fclose(f);
    find_trees();
    return 0;
}

static int group_teardown(void **state)
{
    free(sound);
    stores_remove(*state);
    return 0;
}

static void write_file(size_t n, size_t at, int bit)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, sound, n), n);
    if (bit >= 0) {
        char c = (char)(sound[at] ^ 1 << bit);
        assert_int_equal(pwrite(fd, &c, 1, (off_t)at), 1);
    }
    close(fd);
    fd = open(committed, O_WRONLY);
    assert_int_equal(pwrite(fd, sound_committed, sizeof sound_committed, 0),
                     sizeof sound_committed);
    close(fd);
}

static int64_t size_of(int64_t step)
{
    return step == STEPS + 2 ? SIZE / 2 : SIZE;
}

/* Like stores_compare, but for a process without cmocka. */
static int compare(struct checkpoint *c)
{
    struct variable_record values[3];
    struct error err = ERROR_INIT;
    int result = EXACT;
    stores_values(values, c->manifest.step, size_of(c->manifest.step));
    for (int i = 0; i < 3 && result == EXACT; i++) {
        struct tensor t;
        int at = entry_find(c, values[i].name);
        if (at < 0)
            return WRONG;
        if (checkpoint_read(c, at, &t, &err))
            result = REFUSED;
        else if (!tensor_equal(&t, &values[i].value))
            result = WRONG;
        else
            tensor_release(&t);
    }
    stores_release(values);
    return result;
}

static int read_newest(struct store *store, int64_t wanted)
{
    struct checkpoint *c;
    struct error err = ERROR_INIT, passed_over = ERROR_INIT;
    if (checkpoint_open(store, CHECKPOINT_NEWEST, &c, &passed_over, &err))
        return err.code == ERR_DATA ? REFUSED : WRONG;
    if (c->manifest.step != wanted && !passed_over.code)
        return WRONG; /* the damage went unreported */
    int result = compare(c);
    if (result == EXACT && c->manifest.step != wanted)
        result = OLDER;
    checkpoint_close(c);
    return result;
}

static int read_all(bool write)
{
    struct store *store;
    struct error err = ERROR_INIT;
    const struct store_options options = {.write = write, .owner = "test"};
    if (store_open(path, &options, &store, &err))
        return err.code == ERR_DATA || err.code == ERR_PROTOCOL ? REFUSED : WRONG;
    int result = read_newest(store, STEPS + 2);
    for (int64_t step = 2; step <= STEPS + 1 && result != WRONG; step++) {
        struct checkpoint *c;
        if (checkpoint_open(store, step, &c, NULL, &err))
            continue; /* two were forgotten */
        result = compare(c) == WRONG ? WRONG : result;
        checkpoint_close(c);
    }
    if (write && result != WRONG) { /* then another save, and a nightly job's prune */
        struct prune_report pruned;
        int64_t step = STEPS + 3;
        if (stores_save(store, step, SIZE, NULL, &err))
            return REFUSED;
        int after = read_newest(store, step);
        if (after != EXACT) /* the new save is sound, whatever was before */
            return WRONG;
        store_forget(store, (int64_t[]){2, 4}, 2, &err);
        store_prune(store, false, NULL, &pruned, &err);
        if (read_newest(store, step) != EXACT)
            return WRONG;
    }
    store_close(store);
    return result;
}

static int attempt(bool write)
{
    int status;
    pid_t child = fork();
    if (!child)
        _exit(read_all(write));
    assert_true(child > 0);
    waitpid(child, &status, 0);
    return status;
}

static void every_page_may_have_a_flipped_bit(void **state)
{
    const char *many = getenv("STORE_DAMAGES");
    size_t n = many ? (size_t)atol(many) : 2 * used, counts[4] = {0};
    uint64_t random = 7;
    (void)state;
    for (size_t i = 0; i < n; i++) {
        size_t page = i % 2 ? trees[i / 2 % n_trees] : i / 2 % used;
        uint64_t r = unit_random(&random);
        /* half of them in the first bytes, where headers and lists are */
        size_t at = page * PAGE + (r % 2 ? (r >> 8) % 40 : (r >> 8) % PAGE);
        int bit = (int)(r >> 32) % 8;
        bool write = r >> 40 & 1;
        write_file(sound_bytes, at, bit);
        int status = attempt(write);
        if (!WIFEXITED(status) || WEXITSTATUS(status) >= WRONG)
            fail_msg("bit %d of byte %zu (page %zu, byte %zu), %s: status %#x", bit, at, page,
                     at % PAGE, write ? "writing" : "reading", status);
        counts[WEXITSTATUS(status)]++;
    }
    print_message("%zu bits: %zu exact, %zu refused, %zu older with a reason\n", n, counts[EXACT],
                  counts[REFUSED], counts[OLDER]);
    assert_true(counts[EXACT] && counts[REFUSED]);
}

static void the_file_may_end_anywhere(void **state)
{
    (void)state;
    for (size_t n = 0; n < used * PAGE; n += 4 * PAGE - 7) {
        write_file(n, 0, -1);
        int status = attempt(n / PAGE % 2);
        if (!WIFEXITED(status) || WEXITSTATUS(status) >= WRONG)
            fail_msg("%zu bytes of %zu: status %#x", n, sound_bytes, status);
    }
}

static void other_files_are_no_stores(void **state)
{
    (void)state;
    memset(sound, 0xa5, 3 * PAGE);
    for (size_t n = 1; n < 3 * PAGE; n += 1000) {
        write_file(n, 0, -1);
        assert_int_equal(WEXITSTATUS(attempt(false)), REFUSED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_page_may_have_a_flipped_bit),
        cmocka_unit_test(the_file_may_end_anywhere),
        cmocka_unit_test(other_files_are_no_stores),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
