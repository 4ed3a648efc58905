/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/streams.h"
#include "wire/encoder.h"
#include "wire/header.h"
#include "wire/limits.h"

static const enum dtype all_types[] = {
#define X(constant, name, number, bytes, npy) constant,
    DTYPE_LIST(X)
#undef X
};
#define N_TYPES (sizeof all_types / sizeof all_types[0])

static void round_trip(const struct named_tensor *tensors, int n_tensors)
{
    struct error err = ERROR_INIT;
    struct stream_writer *writer = stream_writer_new_memory("test", -1);
    struct record record = {0};
    size_t n;
    bool more;
    stream_begin(writer, RECORD_TENSOR, 0);
    must(stream_write(writer, tensors, n_tensors, &err), &err);
    must(stream_finish(writer, &err), &err);
    const void *bytes = stream_writer_bytes(writer, &n);
    struct stream_reader *reader = stream_reader_new_memory(bytes, n, "memory");
    must(stream_read(reader, &record, &more, &err), &err);
    assert_true(more && record.kind == RECORD_TENSOR && record.n_tensors == n_tensors);
    for (int i = 0; i < n_tensors; i++) {
        assert_string_equal(record.tensors[i].name, tensors[i].name);
        assert_true(tensor_equal(&record.tensors[i].tensor, &tensors[i].tensor));
    }
    must(stream_read(reader, &record, &more, &err), &err);
    assert_false(more);
    record_release(&record);
    stream_reader_free(reader);
    stream_writer_free(writer);
}

static void test_types_and_shapes(void **state)
{
    (void)state;
    static const char *const shapes[] = {"[]",    "[0]",   "[1]",     "[5]",
                                         "[0,3]", "[2,3]", "[3,0,2]", "[1,2,1,2,1,2,1,3]"};
    for (size_t i = 0; i < N_TYPES; i++) {
        struct named_tensor tensors[8];
        if (all_types[i] == RESOURCE)
            continue;
        for (int j = 0; j < 8; j++) {
            struct shape shape;
            assert_true(shape_parse(shapes[j], &shape));
            tensors[j].name = shapes[j];
            make_tensor(&tensors[j].tensor, all_types[i], &shape);
        }
        round_trip(tensors, 8);
        for (int j = 0; j < 8; j++) {
            round_trip(&tensors[j], 1);
            tensor_release(&tensors[j].tensor);
        }
    }
}

static void test_resources_stay(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    uint64_t handle = 1;
    struct named_tensor named = {"r", tensor_borrow(RESOURCE, &SHAPE_SCALAR, &handle)};
    struct stream_writer *writer = stream_writer_new_memory("test", -1);
    stream_begin(writer, RECORD_TENSOR, 0);
    assert_int_equal(stream_write(writer, &named, 1, &err), ERR_DATA);
    assert_string_equal(err.text, "tensor 'r': type 'resource' is not carried by streams");
    stream_writer_free(writer);
}

struct sender {
    int fd;
    struct named_tensor *tensors;
    int n_tensors;
};

static void *send_through_pipe(void *argument)
{
    struct sender *sender = argument;
    struct error err = ERROR_INIT;
    struct stream_writer *writer = stream_writer_new(sender->fd, "pipe", "test", -1);
    for (int i = 0; i < 3; i++) {
        stream_write_feed(writer, RECORD_FEED, i, NULL, sender->tensors, sender->n_tensors, &err);
        stream_flush(writer, &err);
    }
    stream_finish(writer, &err);
    stream_writer_free(writer);
    close(sender->fd);
    return err.code ? sender : NULL;
}

/* More than one bin and more than one read; the next record reuses the memory. */
static void test_large_tensors_through_a_pipe(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct named_tensor tensors[3] = {{.name = "large"}, {.name = "small"}, {.name = "texts"}};
    struct shape large = shape_vector((17 << 20) + 3), small = shape_vector(5);
    struct shape texts = shape_vector(100000);
    make_tensor(&tensors[0].tensor, INT32, &large);
    make_tensor(&tensors[1].tensor, UINT8, &small);
    make_tensor(&tensors[2].tensor, STRING, &texts);
    int ends[2];
    pthread_t thread;
    void *failed;
    assert_int_equal(pipe(ends), 0);
    struct sender sender = {ends[1], tensors, 3};
    assert_int_equal(pthread_create(&thread, NULL, send_through_pipe, &sender), 0);
    struct stream_reader *reader = stream_reader_new(ends[0], "pipe");
    struct record record = {0};
    bool more;
    for (int64_t i = 0; i < 3; i++) {
        int64_t step;
        must(stream_read(reader, &record, &more, &err), &err);
        assert_true(more && record_get_int(&record.header, "step", &step) && step == i);
        assert_int_equal(stream_reader_count(reader), i + 1);
        for (int j = 0; j < 3; j++)
            assert_true(tensor_equal(&record.tensors[j].tensor, &tensors[j].tensor));
    }
    must(stream_read(reader, &record, &more, &err), &err);
    assert_false(more);
    pthread_join(thread, &failed);
    assert_null(failed);
    record_release(&record);
    stream_reader_free(reader);
    close(ends[0]);
    for (int j = 0; j < 3; j++)
        tensor_release(&tensors[j].tensor);
}

static void test_fields(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct stream_writer *writer = small_stream();
    size_t n;
    const void *bytes = stream_writer_bytes(writer, &n);
    struct stream_reader *reader = stream_reader_new_memory(bytes, n, "memory");
    struct record record = {0};
    struct feed_position position;
    bool more;
    double step;
    const char *text;
    must(stream_read(reader, &record, &more, &err), &err);
    assert_int_equal(stream_reader_expected(reader), 1);
    assert_true(record_get_position(&record, &record.arena, &position));
    assert_string_equal(position.source, "digits.csv");
    assert_true(position.epoch == 3 && position.offset == 1437);
    assert_true(position.seed == 0xfedcba9876543210);
    assert_true(record_get_float(&record.header, "step", &step) && step == 7);
    assert_false(record_get_text(&record.header, "step", &record.arena, &text));
    assert_null(record_field(&record.header, "absent"));
    /* Shared tensors outlive the record. */
    struct tensor kept;
    tensor_share(&kept, &record.tensors[1].tensor);
    must(stream_read(reader, &record, &more, &err), &err);
    assert_int_equal(tensor_bytes(&kept), 3 * 8 + 4);
    tensor_release(&kept);
    record_release(&record);
    stream_reader_free(reader);
    stream_writer_free(writer);
}

static void test_streams_in_a_row(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct stream_writer *writer = small_stream();
    size_t n;
    const char *bytes = stream_writer_bytes(writer, &n);
    char *twice = mem_alloc(2 * n);
    memcpy(twice, bytes, n);
    memcpy(twice + n, bytes, n);
    struct stream_reader *reader = stream_reader_new_memory(twice, 2 * n, "memory");
    struct record record = {0};
    bool more = true;
    int n_records = -1;
    for (; more; n_records++)
        must(stream_read(reader, &record, &more, &err), &err);
    assert_int_equal(n_records, 2);
    record_release(&record);
    stream_reader_free(reader);
    mem_free(twice);
    stream_writer_free(writer);
}

/* The example of docs/stream.md, which tests/tools/msgpack.bats reads with another library. */
static void test_documented_bytes(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct stream_writer *writer = stream_writer_new_memory("docs 1", -1);
    struct feed_position position = {"a.csv", 0, 2, 5};
    struct shape shape = shape_vector(2);
    float values[] = {1, 0.5f};
    const char *texts[] = {"cat", "dog"};
    struct named_tensor tensors[2] = {{"x", tensor_borrow(FLOAT32, &shape, values)},
                                      {.name = "label"}};
    must(tensor_from_strings(&tensors[1].tensor, &shape, texts, NULL, &err), &err);
    must(stream_write_feed(writer, RECORD_FEED, 1, &position, tensors, 2, &err), &err);
    must(stream_finish(writer, &err), &err);
    char expected[1024];
    FILE *file = fopen("tests/data/example.rec", "rb");
    assert_non_null(file);
    size_t n, n_expected = fread(expected, 1, sizeof expected, file);
    fclose(file);
    const void *bytes = stream_writer_bytes(writer, &n);
    assert_int_equal(n, n_expected);
    assert_memory_equal(bytes, expected, n);
    tensor_release(&tensors[1].tensor);
    stream_writer_free(writer);
}

static void encode_without_sums(struct encoder *encoder, const struct named_tensor *tensors, int n,
                                struct str *bytes)
{
    struct error err = ERROR_INIT;
    struct encoder_bodies bodies = {0};
    struct encoder_piece piece;
    must(encoder_finish(encoder, tensors, n, &err), &err);
    str_append_bytes(bytes, encoder->header.data, encoder->header.n);
    encoder_bodies(&bodies, tensors, n, false);
    while (encoder_next(&bodies, SIZE_MAX, &piece))
        str_append_bytes(bytes, piece.bytes ? piece.bytes : piece.tag, piece.n);
    encoder_bodies_release(&bodies);
}

/* Links within a host may leave out the sums of bodies; readers then ignore them. */
static void test_without_sums(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct str bytes = STR_INIT;
    struct record record = {0};
    uint8_t byte = 5;
    bool more;
    struct named_tensor named = {"x", tensor_borrow(UINT8, &SHAPE_SCALAR, &byte)};
    struct encoder encoder = {0};
    msgpack_packer *packer = encoder_begin(&encoder, RECORD_HELLO, 3);
    pack_key_int(packer, "major", STREAM_MAJOR);
    pack_key_int(packer, "minor", STREAM_MINOR);
    pack_key_bool(packer, "sums", false);
    encode_without_sums(&encoder, NULL, 0, &bytes);
    packer = encoder_begin(&encoder, RECORD_FEED, 1);
    pack_key_int(packer, "step", 0);
    encode_without_sums(&encoder, &named, 1, &bytes);
    encoder_release(&encoder);
    struct stream_reader *reader = stream_reader_new_memory(bytes.data, bytes.n, "memory");
    must(stream_read(reader, &record, &more, &err), &err);
    assert_int_equal(tensor_get_int64(&record.tensors[0].tensor, 0), 5);
    record_release(&record);
    stream_reader_free(reader);
    str_release(&bytes);
}

static int count_waits(void *context, struct error *err)
{
    (void)err;
    ++*(int *)context;
    return 0;
}

/* Small records are buffered: thousands of them take a few system calls. */
static void test_few_system_calls(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    char path[] = "/tmp/tf-wire-XXXXXX";
    int fd = mkstemp(path), waits = 0, n_records = -1;
    assert_true(fd >= 0);
    unlink(path);
    struct stream_writer *writer = stream_writer_new(fd, path, "test", 10000);
    float value = 1;
    struct named_tensor named = {"loss", tensor_borrow(FLOAT32, &SHAPE_SCALAR, &value)};
    for (int i = 0; i < 10000; i++)
        must(stream_write_feed(writer, RECORD_FETCH, i, NULL, &named, 1, &err), &err);
    must(stream_finish(writer, &err), &err);
    off_t bytes = lseek(fd, 0, SEEK_END);
    lseek(fd, 0, SEEK_SET);
    struct stream_reader *reader = stream_reader_new(fd, path);
    struct record record = {0};
    bool more = true;
    stream_reader_on_wait(reader, count_waits, &waits);
    for (; more; n_records++)
        must(stream_read(reader, &record, &more, &err), &err);
    assert_int_equal(n_records, 10000);
    assert_true(waits <= bytes / 32768 + 3);
    record_release(&record);
    stream_reader_free(reader);
    stream_writer_free(writer);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types_and_shapes),
        cmocka_unit_test(test_resources_stay),
        cmocka_unit_test(test_large_tensors_through_a_pipe),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_streams_in_a_row),
        cmocka_unit_test(test_documented_bytes),
        cmocka_unit_test(test_without_sums),
        cmocka_unit_test(test_few_system_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
