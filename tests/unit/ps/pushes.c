/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/unit.h"
#include "ps/pushes.h"

static char folder[64], path[80];

static int set_up(void **unused)
{
    (void)unused;
    snprintf(folder, sizeof folder, "/tmp/tf-pushes-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/pushes", folder);
    return 0;
}

static int clean_up(void **unused)
{
    (void)unused;
    return unlink(path) || rmdir(folder);
}

static void must_open(struct pushes *pushes)
{
    struct error err = ERROR_INIT;
    if (pushes_open(pushes, folder, &err))
        fail_msg("%s", err.text);
}

static void what_was_written_is_there_when_it_is_opened_again(void **unused)
{
    struct pushes pushes;
    (void)unused;
    must_open(&pushes);
    assert_int_equal(pushes_read(&pushes, 0), 0);
    assert_int_equal(pushes_read(&pushes, PUSHES_WORKERS - 1), 0);
    pushes_write(&pushes, 3, 7069);
    pushes_write(&pushes, 4, INT64_C(1) << 39);
    pushes_close(&pushes);
    must_open(&pushes);
    assert_int_equal(pushes_read(&pushes, 3), 7069);
    assert_int_equal(pushes_read(&pushes, 4), INT64_C(1) << 39);
    assert_int_equal(pushes_read(&pushes, 5), 0);
    pushes_close(&pushes);
}

/* A flipped bit of a count, a page of zeros, a count in another's place. */
static void what_is_damaged_is_no_count(void **unused)
{
    struct pushes pushes;
    uint64_t word;
    static const char zeros[4096];
    (void)unused;
    must_open(&pushes);
    for (int i = 0; i < PUSHES_WORKERS; i++)
        pushes_write(&pushes, i, 100 + i);
    pushes_close(&pushes);
    int fd = open(path, O_RDWR);
    for (int bit = 0; bit < 64; bit++) { /* worker i: bit i */
        off_t at = (off_t)(bit * (int)sizeof word);
        assert_int_equal(pread(fd, &word, sizeof word, at), sizeof word);
        word ^= UINT64_C(1) << bit;
        assert_int_equal(pwrite(fd, &word, sizeof word, at), sizeof word);
    }
    assert_int_equal(pread(fd, &word, sizeof word, 70 * sizeof word), sizeof word);
    assert_int_equal(pwrite(fd, &word, sizeof word, 71 * sizeof word), sizeof word);
    assert_int_equal(pwrite(fd, zeros, sizeof zeros, 4096), sizeof zeros);
    close(fd);
    must_open(&pushes);
    for (int i = 0; i < PUSHES_WORKERS; i++)
        assert_int_equal(pushes_read(&pushes, i), i < 64 || i == 71 || i >= 512 ? -1 : 100 + i);
    pushes_close(&pushes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_written_is_there_when_it_is_opened_again, set_up,
                                        clean_up),
        cmocka_unit_test_setup_teardown(what_is_damaged_is_no_count, set_up, clean_up),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
