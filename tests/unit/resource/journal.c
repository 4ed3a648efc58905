/* SPDX-License-Identifier: Apache-2.0
 *
 * Journals: what a process finds in the journal of another that was killed at any moment; and files
 * that are no journals. KILLS is how many processes are killed (default 30), KILLS_SEED the first
 * one's seed.
 */
#include "resource/journal.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "lib/unit.h"
#include "resource/journal.h"

#define N 5000

struct book {
    struct variable_store *store;
    struct journal *journal;
    struct journal_head heads[JOURNAL_COPIES];
    int n;
};

static uint64_t owner = 17; /* the journal's owner */
static char folder[] = "/tmp/journal.XXXXXX", path[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "%s/j", mkdtemp(folder));
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

/* As a new process does. */
static struct book open_book(void)
{
    struct error err = ERROR_INIT;
    struct book book = {.store = variable_store_new()};
    book.journal = journal_of(book.store, "default");
    journal_place(book.journal, path, owner);
    if (journal_heads(book.journal, book.heads, &book.n, &err))
        fail_msg("%s", err.text);
    return book;
}

static void close_book(struct book *book)
{
    variable_store_free(book->store);
}

static void begin(struct book *book, int64_t incarnation, int64_t step)
{
    struct error err = ERROR_INIT;
    const struct journal_head head = {incarnation, step};
    if (journal_begin(book->journal, &head, &err))
        fail_msg("%s", err.text);
}

static struct tensor vector(float *values)
{
    struct shape shape = shape_vector(N);
    return tensor_borrow(FLOAT32, &shape, values);
}

static void fill(float *values, float with)
{
    for (int i = 0; i < N; i++)
        values[i] = with + (float)i;
}

/* Writes two values; in odd steps it also adds to the second one. */
static int write_step(struct journal *journal, int64_t step, struct error *err)
{
    float values[N];
    struct tensor t = vector(values);
    fill(values, (float)step);
    int code = journal_write(journal, step, "a", &t, err);
    if (!code)
        code = journal_write(journal, step, "b/c", &t, err);
    if (!code && step % 2)
        code = journal_add(journal, step, "b/c", &t, err);
    return code ? code : journal_commit(journal, step, err);
}

static void is_of(struct book *book, const char *name, int64_t step, bool wants_open, float times)
{
    float values[N], wanted[N];
    struct tensor t = vector(values);
    struct error err = ERROR_INIT;
    bool is_open;
    if (journal_read(book->journal, name, &t, &is_open, &err))
        fail_msg("%s", err.text);
    fill(wanted, (float)step);
    assert_true(is_open == wants_open);
    for (int i = 0; i < N; i++)
        assert_true(values[i] == times * wanted[i]);
}

static void has_step(struct book *book, int64_t incarnation, int64_t step)
{
    begin(book, incarnation, step);
    is_of(book, "a", step, false, 1);
    is_of(book, "b/c", step, step % 2, step % 2 ? 2 : 1);
}

static void the_last_two_are_there(void **state)
{
    struct error err = ERROR_INIT;
    (void)state;
    for (int64_t chosen = 6; chosen <= 7; chosen++) {
        struct book book = open_book();
        begin(&book, 50, 0); /* finds nothing from before */
        for (int64_t step = 1; step <= 7; step++)
            assert_int_equal(write_step(book.journal, step, &err), 0);
        close_book(&book);
        book = open_book();
        assert_int_equal(book.n, 2);
        assert_true(book.heads[0].incarnation == 50 && book.heads[1].incarnation == 50);
        assert_true(book.heads[0].step + book.heads[1].step == 6 + 7);
        has_step(&book, 50, chosen);
        close_book(&book);
        book = open_book(); /* the other process is gone */
        assert_true(book.n == 1 && book.heads[0].step == chosen);
        has_step(&book, 50, chosen);
        assert_int_equal(write_step(book.journal, 9, &err), 0);
        assert_int_equal(journal_heads(book.journal, book.heads, &book.n, &err), 0);
        assert_int_equal(book.n, 2);
        close_book(&book);
    }
    struct book book = open_book();
    journal_remove(book.journal);
    assert_int_equal(access(path, F_OK), -1);
    close_book(&book);
}

static void what_is_not_there_is_an_error(void **state)
{
    float values[N] = {0};
    struct tensor t = vector(values), other = t;
    struct error err = ERROR_INIT;
    struct book book = open_book();
    bool is_open;
    char text[256];
    (void)state;
    begin(&book, 1, 0);
    snprintf(text, sizeof text, "%s: nothing was written of step 1", path);
    unit_assert_error(journal_commit(book.journal, 1, &err), err, ERR_DATA, text);
    err = ERROR_INIT;
    unit_assert_error(journal_add(book.journal, 1, "a", &t, &err), err, ERR_DATA,
                      "the worker's journal lacks 'a' of step 1");
    err = ERROR_INIT;
    assert_int_equal(write_step(book.journal, 1, &err), 0);
    snprintf(text, sizeof text, "%s: there is no copy of step 2", path);
    unit_assert_error(journal_begin(book.journal, &(struct journal_head){1, 2}, &err), err,
                      ERR_DATA, text);
    err = ERROR_INIT;
    snprintf(text, sizeof text, "%s: there is no copy of step 1", path);
    unit_assert_error(journal_begin(book.journal, &(struct journal_head){3, 1}, &err), err,
                      ERR_DATA, text); /* for another clock */
    err = ERROR_INIT;
    begin(&book, 1, 1);
    other.shape.dims[0] = N - 1;
    unit_assert_error(journal_read(book.journal, "a", &other, &is_open, &err), err, ERR_DATA,
                      "the worker's journal lacks 'a', float32[4999]");
    close_book(&book);
}

static void one_without_a_place_has_nothing(void **state)
{
    struct error err = ERROR_INIT;
    struct variable_store *store = variable_store_new();
    struct journal *journal = journal_of(store, "default");
    struct journal_head heads[JOURNAL_COPIES];
    int n = 3;
    (void)state;
    assert_int_equal(journal_heads(journal, heads, &n, &err), 0);
    assert_int_equal(n, 0);
    assert_int_equal(journal_begin(journal, &(struct journal_head){1, 0}, &err), 0);
    assert_int_equal(write_step(journal, 1, &err), 0);
    assert_int_equal(journal_heads(journal, heads, &n, &err), 0);
    assert_int_equal(n, 0);
    variable_store_free(store);
}

/* ---- writers that are killed ---- */

static void write_until_killed(int64_t from)
{
    struct error err = ERROR_INIT;
    struct book book = open_book();
    begin(&book, 8, from);
    for (int64_t step = from + 1;; step++)
        if (write_step(book.journal, step, &err))
            _exit(1);
}

static void what_is_found_is_whole(void **state)
{
    struct seed_range kills = seeds_of("KILLS", 30);
    int64_t last = 0;
    (void)state;
    unlink(path);
    for (int k = 0; k < kills.n; k++) {
        uint64_t seed = kills.first + (uint64_t)k;
        pid_t child = fork();
        if (!child)
            write_until_killed(last);
        nanosleep(&(struct timespec){0, (long)(unit_random(&seed) % 10000000)}, NULL);
        kill(child, SIGKILL);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        struct book book = open_book();
        for (int i = 0; i < book.n; i++) {
            assert_int_equal(book.heads[i].incarnation, 8);
            assert_true(book.heads[i].step >= last);
        }
        assert_true(book.n || !last); /* the first one stays until there is another */
        int which = book.n ? (int)(unit_random(&seed) % (uint64_t)book.n) : -1;
        last = which < 0 ? 0 : book.heads[which].step;
        if (last)
            has_step(&book, 8, last);
        close_book(&book);
    }
    assert_true(last > kills.n);
}

/* ---- files that are no journals ---- */

static void write_bytes(const void *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
    close(fd);
}

/* Returns a journal of steps 6 and 7 as bytes, which the caller frees. */
static char *write_whole(size_t *size)
{
    struct error err = ERROR_INIT;
    struct str whole = STR_INIT;
    struct book book = open_book();
    begin(&book, 50, 0);
    assert_int_equal(write_step(book.journal, 6, &err) | write_step(book.journal, 7, &err), 0);
    close_book(&book);
    assert_int_equal(file_read(path, 1 << 24, &whole, &err), 0);
    *size = whole.n;
    return whole.data;
}

/* A journal with changed bytes, or without its end, is used or started anew. */
static void damage_is_no_crash(void **state)
{
    struct error err = ERROR_INIT;
    uint64_t seed = 4;
    size_t size;
    char *whole = write_whole(&size), *bytes = malloc(size);
    (void)state;
    for (int i = 0; i < 300; i++) {
        size_t n = i % 3 ? size : unit_random(&seed) % size;
        memcpy(bytes, whole, size);
        for (int k = 0; k < 4 && i % 3; k++) { /* in the headers */
            size_t page = unit_random(&seed) % (size / JOURNAL_PAGE);
            bytes[page * JOURNAL_PAGE + unit_random(&seed) % 160] ^= (char)unit_random(&seed);
        }
        write_bytes(bytes, n);
        struct book book = open_book();
        begin(&book, 9, 0);
        assert_int_equal(write_step(book.journal, 3, &err), 0);
        has_step(&book, 9, 3);
        close_book(&book);
    }
    mem_free(whole);
    free(bytes);
}

/* After a change each copy that is found is right, and a missing one is reported. */
static void is_right_or_told(const char *bytes, size_t size)
{
    struct error damage;
    write_bytes(bytes, size);
    struct book book = open_book();
    bool told = journal_take_damage(book.journal, &damage);
    assert_true(told ? strstr(damage.text, path) != NULL : book.n == JOURNAL_COPIES);
    for (int i = 0; i < book.n; i++) {
        struct book other = open_book();
        has_step(&other, 50, book.heads[i].step);
        close_book(&other);
        write_bytes(bytes, size);
    }
    close_book(&book);
}

static void what_was_changed_is_refused(void **state)
{
    struct seed_range flips = seeds_of("FLIPS", 300);
    size_t size;
    char *whole = write_whole(&size), *bytes = malloc(size);
    (void)state;
    for (int i = 0; i < flips.n; i++) {
        uint64_t seed = flips.first + (uint64_t)i;
        size_t at = unit_random(&seed) % (size / JOURNAL_PAGE) * JOURNAL_PAGE;
        size_t room = unit_random(&seed) % 2 ? 200 : JOURNAL_PAGE;
        memcpy(bytes, whole, size);
        if (i % 4)
            bytes[at + unit_random(&seed) % room] ^= (char)(1 << unit_random(&seed) % 8);
        else
            memset(bytes + at + 4096 * (unit_random(&seed) % (JOURNAL_PAGE / 4096)), 0, 4096);
        is_right_or_told(bytes, size);
    }
    mem_free(whole);
    free(bytes);
}

static void anothers_is_refused(void **state)
{
    struct error damage;
    size_t size;
    char text[256];
    (void)state;
    mem_free(write_whole(&size));
    owner++;
    struct book book = open_book();
    assert_int_equal(book.n, 0);
    assert_true(journal_take_damage(book.journal, &damage));
    snprintf(text, sizeof text, "%s: is of another worker, graph or job", path);
    assert_string_equal(damage.text, text);
    close_book(&book);
}

static void a_full_disk_is_an_error(void **state)
{
    struct rlimit before, few = {0};
    struct error err = ERROR_INIT;
    char text[256];
    struct book book = open_book();
    (void)state;
    begin(&book, 1, 0);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    few = (struct rlimit){2 * JOURNAL_PAGE, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
    int code = write_step(book.journal, 1, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    snprintf(text, sizeof text, "%s: no room for what the worker keeps: File too large", path);
    unit_assert_error(code, err, ERR_IO, text);
    err = ERROR_INIT;
    assert_int_equal(write_step(book.journal, 2, &err), 0); /* there is room again */
    has_step(&book, 1, 2);
    close_book(&book);
}

static void who_may_not_write_is_told(void **state)
{
    struct error err = ERROR_INIT;
    struct variable_store *store = variable_store_new();
    struct journal *journal = journal_of(store, "default");
    struct journal_head heads[JOURNAL_COPIES];
    char text[256];
    int n;
    (void)state;
    unlink(path);
    assert_int_equal(symlink("/dev/null", path), 0);
    journal_place(journal, path, owner);
    snprintf(text, sizeof text, "%s: Too many levels of symbolic links", path);
    unit_assert_error(journal_heads(journal, heads, &n, &err), err, ERR_IO, text);
    variable_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_two_are_there),
        cmocka_unit_test(what_is_not_there_is_an_error),
        cmocka_unit_test(one_without_a_place_has_nothing),
        cmocka_unit_test(what_is_found_is_whole),
        cmocka_unit_test(damage_is_no_crash),
        cmocka_unit_test(what_was_changed_is_refused),
        cmocka_unit_test(anothers_is_refused),
        cmocka_unit_test(a_full_disk_is_an_error),
        cmocka_unit_test(who_may_not_write_is_told),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
