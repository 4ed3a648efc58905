/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions behind the public library: variables saved to files, and which a save replaces.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "lib/api_lab.h"

static void test_variables_as_files(void **state)
{
    char folder[] = "/tmp/tf-api.XXXXXX", file[100], none[100];
    struct lab lab = lab_open(LINE);
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/w.ckpt", folder);
    snprintf(none, sizeof none, "%s/none/w.ckpt", folder);
    train(&lab, 5);
    ok(tf_core.session_save(lab.session, file, &error));
    assert_int_equal(chmod(file, 0600), 0);
    train(&lab, 2);
    assert_true(value_of(&lab) == 7);
    ok(tf_core.session_restore(lab.session, file, &error));
    assert_int_equal(tf_core.session_step(lab.session), 5);
    assert_true(value_of(&lab) == 5);
    ok(tf_core.session_save(lab.session, file, &error)); /* replaces the first file */
    struct stat status;
    assert_int_equal(stat(file, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(tf_core.session_save(lab.session, none, &error), TF_IO);
    assert_int_equal(tf_core.session_restore(lab.session, none, &error), TF_NOINPUT);
    assert_int_equal(truncate(file, status.st_size / 2), 0);
    assert_int_equal(tf_core.session_restore(lab.session, file, &error), TF_DATA);
    assert_true(value_of(&lab) == 5);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(folder), 0); /* the folder holds nothing else */
    lab_close(&lab);
}

/* A link's target is replaced; a pipe or a device is written to, not replaced. */
static void test_variables_where_a_file_leads(void **state)
{
    char folder[] = "/tmp/tf-api.XXXXXX", file[100], link[100], pipe[100], bytes[4096], start[4096];
    struct lab lab = lab_open(LINE);
    struct stat status;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/w.ckpt", folder);
    snprintf(link, sizeof link, "%s/link", folder);
    snprintf(pipe, sizeof pipe, "%s/pipe", folder);
    train(&lab, 3);
    ok(tf_core.session_save(lab.session, file, &error));
    assert_int_equal(symlink("w.ckpt", link), 0);
    train(&lab, 1);
    ok(tf_core.session_save(lab.session, link, &error));
    assert_int_equal(lstat(link, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    size_t n = file_read_part(file, 0, start, sizeof start);
    ok(tf_core.session_restore(lab.session, file, &error));
    assert_int_equal(tf_core.session_step(lab.session), 4);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    int fd = open(pipe, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ok(tf_core.session_save(lab.session, pipe, &error));
    assert_int_equal(lstat(pipe, &status), 0);
    assert_true(S_ISFIFO(status.st_mode));
    assert_true(n > 0 && n < sizeof start);
    assert_int_equal(read(fd, bytes, sizeof bytes), n);
    assert_memory_equal(bytes, start, n);
    close(fd);
    unlink(link), unlink(pipe), unlink(file);
    assert_int_equal(rmdir(folder), 0);
    lab_close(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variables_as_files),
        cmocka_unit_test(test_variables_where_a_file_leads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
