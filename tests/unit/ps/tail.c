/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/unit.h"
#include "ps/tail.h"
#include "wire/record.h"

/* A stream of `n` fetch records: step i, loss i / 2, and a vector of three numbers. */
static struct stream_writer *make_stream(int n)
{
    struct stream_writer *writer = stream_writer_new_memory("test", n);
    struct error err = ERROR_INIT;
    for (int i = 1; i <= n; i++) {
        float loss = (float)i / 2, many[3] = {1, 2, 3};
        struct shape scalar = {.rank = 0}, three = {.rank = 1, .dims = {3}};
        struct named_tensor tensors[] = {{"loss", tensor_borrow(FLOAT32, &scalar, &loss)},
                                         {"many", tensor_borrow(FLOAT32, &three, many)}};
        assert_int_equal(stream_write_feed(writer, RECORD_FETCH, i, NULL, tensors, 2, &err), 0);
    }
    assert_int_equal(stream_finish(writer, &err), 0);
    return writer;
}

static char path[64];

static void write_bytes(const void *bytes, size_t n, int flags)
{
    int fd = open(path, O_WRONLY | O_CREAT | flags, 0600);
    assert_int_equal(write(fd, bytes, n), n);
    close(fd);
}

static int set_up(void **unused)
{
    (void)unused;
    snprintf(path, sizeof path, "/tmp/tf-tail-%ld", (long)getpid());
    return 0;
}

static int clean_up(void **unused)
{
    (void)unused;
    return unlink(path);
}

/* In whatever pieces it arrives, the last whole record counts. */
static void a_file_that_grows(void **unused)
{
    (void)unused;
    struct stream_writer *writer = make_stream(5);
    struct tail tail;
    size_t n;
    const char *bytes = stream_writer_bytes(writer, &n);
    tail_init(&tail, path);
    tail_read(&tail);
    assert_int_equal(tail.step, -1);
    for (size_t i = 0; i < n; i++) {
        int64_t before = tail.step;
        write_bytes(bytes + i, 1, O_APPEND);
        tail_read(&tail);
        assert_true(tail.step == before || tail.step == (before < 0 ? 1 : before + 1));
    }
    assert_int_equal(tail.step, 5);
    assert_int_equal(tail.total, 5);
    assert_string_equal(str_text(&tail.values), "loss=2.5");
    tail_release(&tail);
    stream_writer_free(writer);
}

static double scalar_of(const struct tail *tail, const char *name)
{
    for (size_t i = 0; i < tail->wanted.n; i++)
        if (!strcmp(tail->wanted.items[i].name, name))
            return tail->wanted.items[i].value;
    return -1;
}

/* Step i computes its loss from version i - 1 of the variables, and values after the update from
 * version i; `lags`: values of no particular version. */
static void write_step(struct stream_writer *writer, int64_t i)
{
    float loss = (float)i, late = (float)(10 * i), own = 7;
    struct shape scalar = {.rank = 0};
    struct error err = ERROR_INIT;
    struct named_tensor tensors[] = {{"loss", tensor_borrow(FLOAT32, &scalar, &loss)},
                                     {"late", tensor_borrow(FLOAT32, &scalar, &late)},
                                     {"own", tensor_borrow(FLOAT32, &scalar, &own)}};
    const int64_t versions[] = {i - 1, i, -1};
    assert_int_equal(stream_write_fetches(writer, i, versions, tensors, 3, &err), 0);
}

/* Scalars of one version are in two records. */
static void scalars_of_a_version(void **unused)
{
    (void)unused;
    struct stream_writer *writer = stream_writer_new_memory("test", -1);
    struct tail tail;
    size_t n, written = 0;
    tail_init(&tail, path);
    tail_want(&tail, 3, true);
    for (int64_t i = 1; i <= 5; i++) {
        write_step(writer, i);
        const char *bytes = stream_writer_bytes(writer, &n);
        write_bytes(bytes + written, n - written, O_APPEND);
        written = n;
        tail_read(&tail);
        assert_int_equal(tail.wanted.n, i < 3 ? 0 : i < 4 ? 1 : 2);
        assert_int_equal(tail.has_all, i >= 4);
    }
    assert_true(scalar_of(&tail, "late") == 30);
    assert_true(scalar_of(&tail, "loss") == 4);
    tail_want(&tail, 6, false); /* 7 will do if no scalar is of 6 */
    assert_int_equal(tail.wanted.n, 0);
    write_step(writer, 8);
    const char *bytes = stream_writer_bytes(writer, &n);
    write_bytes(bytes + written, n - written, O_APPEND);
    tail_read(&tail);
    assert_true(tail.has_all && !tail.is_of_each_step);
    assert_true(scalar_of(&tail, "loss") == 8 && scalar_of(&tail, "late") == 80);
    tail_release(&tail);
    stream_writer_free(writer);
}

static void a_file_that_is_begun_again(void **unused)
{
    (void)unused;
    struct stream_writer *longer = make_stream(9), *shorter = make_stream(2);
    struct tail tail;
    size_t n;
    const void *bytes = stream_writer_bytes(longer, &n);
    write_bytes(bytes, n, 0);
    tail_init(&tail, path);
    tail_read(&tail);
    assert_int_equal(tail.step, 9);
    bytes = stream_writer_bytes(shorter, &n);
    write_bytes(bytes, n, O_TRUNC);
    tail_read(&tail);
    assert_int_equal(tail.step, 2);
    assert_string_equal(str_text(&tail.values), "loss=1");
    write_bytes("what is this", 12, O_APPEND);
    tail_read(&tail);
    assert_int_equal(tail.step, 2); /* it does not guess after damage */
    tail_release(&tail);
    stream_writer_free(longer);
    stream_writer_free(shorter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_that_grows, set_up, clean_up),
        cmocka_unit_test_setup_teardown(scalars_of_a_version, set_up, clean_up),
        cmocka_unit_test_setup_teardown(a_file_that_is_begun_again, set_up, clean_up),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
