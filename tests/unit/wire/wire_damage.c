/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "lib/streams.h"
#include "wire/header.h"

#define TEXT(s) s, sizeof(s) - 1

/* Reads all records; returns the code and fills the error. */
static int read_all(const void *bytes, size_t n, struct error *err)
{
    struct stream_reader *reader = stream_reader_new_memory(bytes, n, "memory");
    struct record record = {0};
    bool more = true;
    int code = 0;
    while (more && !code)
        code = stream_read(reader, &record, &more, err);
    record_release(&record);
    stream_reader_free(reader);
    return code;
}

static void refuses(const void *bytes, size_t n, int code, const char *message)
{
    struct error err = ERROR_INIT;
    assert_int_equal(read_all(bytes, n, &err), code);
    assert_string_equal(err.text, message);
}

static void test_truncation_everywhere(void **state)
{
    (void)state;
    struct stream_writer *writer = small_stream();
    size_t n;
    const char *bytes = stream_writer_bytes(writer, &n);
    char message[200];
    refuses(bytes, 0, ERR_DATA, "memory: empty: no stream");
    for (size_t cut = 1; cut < n; cut++) {
        snprintf(message, sizeof message,
                 "memory: truncated after %zu bytes: no trailer, the stage before did not finish",
                 cut);
        char *copy = mem_alloc(cut); /* of exact size, so that ASan sees a read beyond it */
        memcpy(copy, bytes, cut);
        refuses(copy, cut, ERR_DATA, message);
        mem_free(copy);
    }
    stream_writer_free(writer);
}

static void test_truncated_pipe(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct stream_writer *writer = small_stream();
    size_t n;
    const char *bytes = stream_writer_bytes(writer, &n);
    for (size_t cut = 1; cut < n; cut += 7) {
        int ends[2];
        bool more = true;
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(write(ends[1], bytes, cut), (ssize_t)cut);
        close(ends[1]);
        struct stream_reader *reader = stream_reader_new(ends[0], "stdin");
        struct record record = {0};
        while (more && !stream_read(reader, &record, &more, &err))
            ;
        assert_int_equal(err.code, ERR_DATA);
        char message[200];
        snprintf(message, sizeof message,
                 "stdin: truncated after %zu bytes: no trailer, the stage before did not finish",
                 cut);
        assert_string_equal(err.text, message);
        record_release(&record);
        stream_reader_free(reader);
        close(ends[0]);
    }
    stream_writer_free(writer);
}

static void test_every_bit_counts(void **state)
{
    (void)state;
    struct stream_writer *writer = small_stream();
    struct error err = ERROR_INIT;
    size_t n;
    const char *bytes = stream_writer_bytes(writer, &n);
    char *copy = mem_alloc(n);
    for (size_t bit = 0; bit < n * 8; bit++) {
        memcpy(copy, bytes, n);
        copy[bit / 8] ^= (char)(1 << bit % 8);
        int code = read_all(copy, n, &err);
        if (code != ERR_DATA && code != ERR_PROTOCOL)
            fail_msg("bit %zu of byte %zu: code %d", bit % 8, bit / 8, code);
    }
    mem_free(copy);
    stream_writer_free(writer);
}

static void test_not_a_stream(void **state)
{
    (void)state;
    refuses(TEXT("\x93NUMPY\x01"), ERR_DATA,
            "memory: not a tf-tools stream: looks like a .npy file");
    refuses(TEXT("x,y\n1,2\n"), ERR_DATA, "memory: not a tf-tools stream: looks like text");
    refuses(TEXT("x"), ERR_DATA, "memory: not a tf-tools stream: looks like text");
    refuses(TEXT("\x1f\x8b\x08"), ERR_DATA,
            "memory: not a tf-tools stream: looks like a gzip file");
    refuses(TEXT("\x01\x02\x03"), ERR_DATA, "memory: not a tf-tools stream");
    refuses(TEXT("\xce\xff\xff\xff\xff"), ERR_DATA,
            "memory: a header of 4294967295 bytes is beyond the limit of 536870912");
    refuses(TEXT("\xce\x1f\xff\xff\xff\x80"), ERR_DATA,
            "memory: truncated after 6 bytes: no trailer, the stage before did not finish");
}

/* Refuses a whole stream whose one record has these fields, packed by `pack`. */
static void refuses_record(enum record_kind kind, int n_fields, void (*pack)(msgpack_packer *),
                           int code, const char *message)
{
    struct error err = ERROR_INIT;
    struct stream_writer *writer = stream_writer_new_memory("test", -1);
    size_t n;
    msgpack_packer *packer = stream_begin(writer, kind, n_fields);
    pack(packer);
    must(stream_write(writer, NULL, 0, &err), &err);
    const void *bytes = stream_writer_bytes(writer, &n);
    refuses(bytes, n, code, message);
    stream_writer_free(writer);
}

static void pack_entry(msgpack_packer *packer, const char *type, int64_t dim, int64_t bytes)
{
    pack_key(packer, "tensors");
    msgpack_pack_array(packer, 1);
    msgpack_pack_map(packer, 5);
    pack_key(packer, "name");
    pack_text(packer, "a");
    pack_key(packer, "type");
    pack_text(packer, type);
    pack_key(packer, "shape");
    msgpack_pack_array(packer, 1);
    msgpack_pack_int64(packer, dim);
    pack_key(packer, "bins");
    msgpack_pack_int(packer, 1);
    pack_key(packer, "bytes");
    msgpack_pack_int64(packer, bytes);
}

static void pack_absent_data(msgpack_packer *packer)
{
    pack_entry(packer, "uint8", (int64_t)1 << 40, (int64_t)1 << 40);
}

static void pack_huge(msgpack_packer *packer)
{
    pack_entry(packer, "uint8", (int64_t)1 << 41, (int64_t)1 << 41);
}

static void pack_mismatch(msgpack_packer *packer)
{
    pack_entry(packer, "float32", 3, 13);
}

static void pack_negative(msgpack_packer *packer)
{
    pack_entry(packer, "float32", -3, 12);
}

static void pack_few_offsets(msgpack_packer *packer)
{
    pack_entry(packer, "string", 3, 31);
}

static void pack_overflow(msgpack_packer *packer)
{
    pack_entry(packer, "string", INT64_MAX, 32);
}

static void pack_unknown_type(msgpack_packer *packer)
{
    pack_entry(packer, "float128", 3, 48);
}

static void pack_other_major(msgpack_packer *packer)
{
    pack_key(packer, "major");
    msgpack_pack_int(packer, STREAM_MAJOR + 1);
    pack_key(packer, "minor");
    msgpack_pack_int(packer, 4);
}

static void pack_wrong_count(msgpack_packer *packer)
{
    pack_key(packer, "records");
    msgpack_pack_int(packer, 9);
}

static void pack_error(msgpack_packer *packer)
{
    pack_key(packer, "tool");
    pack_text(packer, "tf-graph");
    pack_key(packer, "code");
    msgpack_pack_int(packer, ERR_NOINPUT);
}

static void pack_nested(msgpack_packer *packer)
{
    pack_key(packer, "deep");
    for (int i = 0; i < LIMIT_HEADER_DEPTH; i++)
        msgpack_pack_array(packer, 1);
    msgpack_pack_nil(packer);
}

static void pack_bomb(msgpack_packer *packer)
{
    pack_key(packer, "many");
    msgpack_pack_array(packer, 0x7fffffff);
}

static void test_bad_records(void **state)
{
    (void)state;
    refuses_record(RECORD_FEED, 1, pack_huge, ERR_DATA,
                   "memory: tensor 'a': 2199023255552 bytes are beyond the limit of 1099511627776");
    refuses_record(RECORD_FEED, 1, pack_mismatch, ERR_DATA,
                   "memory: tensor 'a': 13 bytes are not a float32[3]");
    refuses_record(RECORD_FEED, 1, pack_negative, ERR_DATA, "memory: malformed list of tensors");
    refuses_record(RECORD_FEED, 1, pack_few_offsets, ERR_DATA,
                   "memory: tensor 'a': 31 bytes are not a string[3]");
    refuses_record(RECORD_FEED, 1, pack_overflow, ERR_DATA,
                   "memory: tensor 'a': 32 bytes are not a string[9223372036854775807]");
    refuses_record(RECORD_FEED, 1, pack_unknown_type, ERR_DATA,
                   "memory: tensor 'a': type 'float128' is not carried by streams");
    refuses_record(RECORD_HELLO, 2, pack_other_major, ERR_DATA,
                   "memory: a stream starts before the trailer of the one before");
    refuses_record(RECORD_END, 1, pack_wrong_count, ERR_DATA,
                   "memory: the trailer counts 9 records, but there are 0");
    refuses_record(RECORD_ERROR, 2, pack_error, ERR_NOINPUT, "memory: stopped by tf-graph");
    refuses_record(RECORD_GRAPH, 1, pack_nested, ERR_DATA,
                   "memory: a header is nested deeper than 24");
    refuses_record(RECORD_GRAPH, 1, pack_bomb, ERR_DATA, "memory: malformed header");
    struct error err = ERROR_INIT;
    struct stream_writer *writer = stream_writer_new_memory("test", -1);
    size_t n;
    pack_absent_data(stream_begin(writer, RECORD_FEED, 1));
    must(stream_write(writer, NULL, 0, &err), &err);
    const void *bytes = stream_writer_bytes(writer, &n);
    assert_int_equal(read_all(bytes, n, &err), ERR_DATA);
    assert_true(str_starts(err.text, "memory: truncated after "));
    stream_writer_free(writer);
}

/* Replaces the bytes of the first record by those of `header`, with a valid checksum. */
static void refuses_first(const char *header, size_t n, int code, const char *message)
{
    uint8_t bytes[256] = {0xce, 0, 0, 0, (uint8_t)(n + 9), [5] = 0};
    memcpy(bytes + 5, header, n);
    uint64_t sum = hash_bytes(header, n, 0);
    bytes[5 + n] = 0xcf;
    for (size_t i = 0; i < 8; i++)
        bytes[5 + n + 1 + i] = (uint8_t)(sum >> (56 - 8 * i));
    refuses(bytes, 5 + n + 9, code, message);
}

static void test_bad_hellos(void **state)
{
    (void)state;
    refuses_first(TEXT("\x84\xa4kind\xa5hello\xa5major\x02\xa5minor\x04\xa3sum"), ERR_PROTOCOL,
                  "memory: stream format 2.4, but this program reads 1.0");
    refuses_first(TEXT("\x82\xa4kind\xa5hello\xa3sum"), ERR_DATA,
                  "memory: a hello without a version");
    refuses_first(TEXT("\x82\xa4kind\xa6poetry\xa3sum"), ERR_DATA,
                  "memory: unknown record kind 'poetry'");
    refuses_first(TEXT("\x82\xa4kind\xa4"
                       "feed\xa3sum"),
                  ERR_DATA, "memory: a stream starts with record 'feed', not with a hello");
    refuses_first(TEXT("\x81\xa3sum"), ERR_DATA, "memory: a record without a kind");
}

static void test_error_record_reaches_the_next_stage(void **state)
{
    (void)state;
    struct error err = ERROR_INIT, cause = {.code = ERR_CONFIG, .text = "no such task"};
    struct stream_writer *writer = stream_writer_new_memory("tf-place", -1);
    stream_write_error(writer, "tf-place", &cause);
    size_t n;
    const void *bytes = stream_writer_bytes(writer, &n);
    struct stream_reader *reader = stream_reader_new_memory(bytes, n, "stdin");
    struct record record = {0};
    bool more;
    assert_int_equal(stream_read(reader, &record, &more, &err), ERR_CONFIG);
    assert_string_equal(stream_reader_stopped_by(reader), "tf-place");
    assert_int_equal(err.reason, ERROR_STOPPED);
    assert_string_equal(err.text, "stdin: stopped by tf-place");
    record_release(&record);
    stream_reader_free(reader);
    stream_writer_free(writer);
}

static void test_closed_pipe(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    int ends[2];
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    struct stream_writer *writer = stream_writer_new(ends[1], "stdout", "test", -1);
    assert_int_equal(stream_finish(writer, &err), ERR_IO);
    assert_string_equal(err.text, "stdout: writing: Broken pipe");
    assert_int_equal(stream_flush(writer, &err), ERR_IO);
    stream_writer_free(writer);
    close(ends[1]);
}

/* Invalid input that would cost memory if it were believed. */
static void test_validator(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    static const struct {
        const char *bytes;
        size_t n;
        bool good;
    } rows[] = {
        {TEXT("\x80"), true},
        {TEXT("\x81\xa1k\xc0"), true},
        {TEXT("\xde\x00\x01\xa1k\xd9\x01v"), true},
        {TEXT("\x81\xa1k\xd8\x01"
              "0123456789abcdef"),
         true},
        {TEXT("\x81\xa1k\xd8\x01"
              "0123456789abcde"),
         false},
        {TEXT("\x81\xa1k"), false},
        {TEXT("\x81\xa1k\xc1"), false},
        {TEXT("\x81\xa1k\xc0\xc0"), false},
        {TEXT("\x81\xa1k\xdd\xff\xff\xff\xff"), false},
        {TEXT("\xdf\xff\xff\xff\xff"), false},
        {TEXT("\x81\xa1k\xdb\xff\xff\xff\xff"), false},
        {TEXT("\x81\xa1k\xc9\xff\xff\xff\xff"), false},
        {TEXT("\x91\xc0"), false},
        {TEXT("\xc0"), false},
        {TEXT(""), false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *copy = mem_alloc(rows[i].n);
        size_t n_objects;
        memcpy(copy, rows[i].bytes, rows[i].n);
        int code = header_measure((const uint8_t *)copy, rows[i].n, &n_objects, &err);
        if (!code != rows[i].good)
            fail_msg("row %zu", i);
        mem_free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truncation_everywhere),
        cmocka_unit_test(test_truncated_pipe),
        cmocka_unit_test(test_every_bit_counts),
        cmocka_unit_test(test_not_a_stream),
        cmocka_unit_test(test_bad_records),
        cmocka_unit_test(test_bad_hellos),
        cmocka_unit_test(test_error_record_reaches_the_next_stage),
        cmocka_unit_test(test_closed_pipe),
        cmocka_unit_test(test_validator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
