/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading parts of files, and replacing files atomically.
 */
#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/new_file.h"
#include "lib/unit.h"

static char folder[] = "/tmp/file-XXXXXX", path[64];

static const char *part(off_t at, size_t n)
{
    static char bytes[16];
    memset(bytes, 0, sizeof bytes);
    file_read_part(path, at, bytes, n);
    return bytes;
}

static void test_a_part_from_either_end(void **state)
{
    struct error err = ERROR_INIT;
    char byte;
    (void)state;
    assert_int_equal(file_replace(path, 0600, "0123456789", 10, &err), 0);
    assert_string_equal(part(0, 15), "0123456789");
    assert_string_equal(part(7, 2), "78");
    assert_string_equal(part(9, 15), "9");
    assert_string_equal(part(10, 15), "");
    assert_string_equal(part(-3, 15), "789");
    assert_string_equal(part(-3, 2), "78");
    assert_string_equal(part(-10, 15), "0123456789");
    assert_string_equal(part(-11, 3), "012");
    assert_int_equal(file_read_part("/nowhere/x", -1, &byte, 1), 0);
    assert_int_equal(file_read_part(folder, 0, &byte, 1), 0);
}

static void test_another_takes_its_place(void **state)
{
    struct error err = ERROR_INIT;
    struct stat before, after;
    struct str text = STR_INIT;
    char new[80];
    (void)state;
    mode_t mask = umask(077);
    assert_int_equal(file_replace(path, 0644, "old", 3, &err), 0);
    FILE *reader = fopen(path, "re");
    assert_non_null(reader);
    assert_int_equal(stat(path, &before), 0);
    assert_int_equal(before.st_mode & 0777, 0644);
    assert_int_equal(file_replace(path, 0640, "newer", 5, &err), 0);
    umask(mask);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(after.st_mode & 0777, 0640);
    assert_true(before.st_ino != after.st_ino);
    assert_int_equal(fgetc(reader), 'o'); /* whoever has the old file open can read all of it */
    fclose(reader);
    assert_int_equal(file_read(path, 100, &text, &err), 0);
    assert_string_equal(text.data, "newer");
    str_release(&text);
    /* a file that cannot be written stays as it is, and nothing is left beside it */
    snprintf(new, sizeof new, "%s.new", path);
    assert_int_equal(symlink("/nowhere", new), 0);
    assert_int_equal(file_replace(path, 0600, "no", 2, &err), ERR_IO);
    assert_int_equal(unlink(new), 0);
    assert_string_equal(part(0, 15), "newer");
    error_clear(&err);
    assert_int_equal(file_replace("/nowhere/x", 0600, "no", 2, &err), ERR_IO);
}

static int count_files(void)
{
    struct dirent *entry;
    int n = 0;
    DIR *all = opendir(folder);
    while ((entry = readdir(all)))
        n += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    closedir(all);
    return n;
}

static bool can_do_without_a_name(void)
{
    int fd = open(folder, O_TMPFILE | O_WRONLY, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void test_who_is_killed_leaves_nothing(void **state)
{
    struct new_file file;
    struct error err = ERROR_INIT;
    struct str text = STR_INIT;
    char whole[80];
    int status, before = count_files();
    (void)state;
    if (!can_do_without_a_name())
        skip();
    snprintf(whole, sizeof whole, "%s/whole", folder);
    pid_t child = fork();
    if (!child) {
        if (!new_file_open(&file, whole, &err) && write(file.fd, "half", 4) == 4)
            raise(SIGKILL);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(count_files(), before);
    for (int i = 0; i < 2; i++) { /* the second file replaces the first */
        assert_int_equal(new_file_open(&file, whole, &err), 0);
        assert_int_equal(write(file.fd, i ? "new" : "old", 3), 3);
        assert_int_equal(new_file_commit(&file, &err), 0);
    }
    assert_int_equal(file_read(whole, 100, &text, &err), 0);
    assert_string_equal(text.data, "new");
    str_release(&text);
    assert_int_equal(unlink(whole), 0);
    assert_int_equal(count_files(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_part_from_either_end),
        cmocka_unit_test(test_another_takes_its_place),
        cmocka_unit_test(test_who_is_killed_leaves_nothing),
    };
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/a", folder);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    rmdir(folder);
    return failed;
}
