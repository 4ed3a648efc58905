/* SPDX-License-Identifier: Apache-2.0
 *
 * Records in pieces: in whatever pieces the bytes come, the decoder gives the same records and the
 * encoder the same bytes, and damage is always noticed.
 */
#include <string.h>

#include "lib/streams.h"
#include "wire/decoder.h"
#include "wire/encoder.h"

#define N_TENSORS 5

static void make_tensors(struct named_tensor tensors[N_TENSORS])
{
    static const enum dtype types[N_TENSORS] = {FLOAT32, STRING, BOOL, INT64, STRING};
    static const char *const shapes[N_TENSORS] = {"[3,2]", "[2]", "[5]", "[0]", "[]"};
    static const char *const names[N_TENSORS] = {"x", "label", "mask", "none", "empty"};
    for (int i = 0; i < N_TENSORS; i++) {
        struct shape shape;
        assert_true(shape_parse(shapes[i], &shape));
        make_tensor(&tensors[i].tensor, types[i], &shape);
        tensors[i].name = names[i];
        if (types[i] == BOOL)
            memcpy(tensors[i].tensor.data, "\1\0\1\1\0", 5);
    }
}

static void free_tensors(struct named_tensor tensors[N_TENSORS])
{
    for (int i = 0; i < N_TENSORS; i++)
        tensor_release(&tensors[i].tensor);
}

/* Encodes a record, taking bodies in pieces of at most `limit` bytes. */
static void encode(struct str *bytes, const struct named_tensor *tensors, int n, bool sums,
                   size_t limit)
{
    struct error err = ERROR_INIT;
    struct encoder encoder = {0};
    struct encoder_bodies bodies = {0};
    struct encoder_piece piece;
    msgpack_packer *packer = encoder_begin(&encoder, RECORD_VALUE, 1);
    pack_key(packer, "step");
    msgpack_pack_int64(packer, 388);
    must(encoder_finish(&encoder, tensors, n, &err), &err);
    str_append_bytes(bytes, encoder.header.data, encoder.header.n);
    size_t header = bytes->n;
    encoder_bodies(&bodies, tensors, n, sums);
    while (encoder_next(&bodies, limit, &piece)) {
        assert_true(piece.n <= limit || !piece.bytes);
        str_append_bytes(bytes, piece.bytes ? piece.bytes : piece.tag, piece.n);
    }
    assert_int_equal(bytes->n - header, encoder_body_bytes(tensors, n, 0));
    encoder_bodies_release(&bodies);
    encoder_release(&encoder);
}

/* Gives the decoder at most `most` bytes at a time. Returns how many it took until the record was
 * complete or decoding failed. */
static size_t feed(struct decoder *decoder, const char *bytes, size_t n, size_t most,
                   struct error *err)
{
    size_t at = 0;
    while (at < n && !decoder_done(decoder)) {
        void *out;
        size_t wanted;
        decoder_want(decoder, &out, &wanted);
        assert_true(wanted > 0);
        size_t part = wanted < n - at ? wanted : n - at;
        part = part < most ? part : most;
        memcpy(out, bytes + at, part);
        at += part;
        if (decoder_took(decoder, part, err))
            break;
    }
    return at;
}

static bool is_same(const struct record *record, const struct named_tensor *tensors, int n)
{
    int64_t step;
    bool same = record->kind == RECORD_VALUE && record->n_tensors == n &&
                record_get_int(&record->header, "step", &step) && step == 388;
    for (int i = 0; same && i < n; i++)
        same = !strcmp(record->tensors[i].name, tensors[i].name) &&
               tensor_equal(&record->tensors[i].tensor, &tensors[i].tensor);
    return same;
}

static void test_pieces(void **state)
{
    (void)state;
    struct named_tensor tensors[N_TENSORS];
    struct str whole = STR_INIT;
    make_tensors(tensors);
    encode(&whole, tensors, N_TENSORS, true, SIZE_MAX);
    encode(&whole, NULL, 0, true, SIZE_MAX);
    for (size_t limit = 1; limit < 40; limit++) {
        struct str bytes = STR_INIT;
        struct decoder decoder = {.sums = true};
        struct record record = {0};
        struct error err = ERROR_INIT;
        encode(&bytes, tensors, N_TENSORS, true, limit);
        encode(&bytes, NULL, 0, true, limit);
        assert_int_equal(bytes.n, whole.n);
        assert_memory_equal(bytes.data, whole.data, whole.n);
        decoder_start(&decoder, &record);
        size_t taken = feed(&decoder, bytes.data, bytes.n, limit, &err);
        assert_true(decoder_done(&decoder) && is_same(&record, tensors, N_TENSORS));
        decoder_start(&decoder, &record);
        assert_int_equal(record.offset, taken);
        assert_int_equal(feed(&decoder, bytes.data + taken, bytes.n - taken, limit, &err),
                         bytes.n - taken);
        assert_true(decoder_done(&decoder) && is_same(&record, NULL, 0));
        assert_int_equal(decoder.offset, bytes.n);
        decoder_release(&decoder);
        record_release(&record);
        str_release(&bytes);
    }
    free_tensors(tensors);
    str_release(&whole);
}

/* A stream's reader understands the encoder's output. */
static void test_streams_agree(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct named_tensor tensors[N_TENSORS];
    struct stream_writer *writer = stream_writer_new_memory("test", 1);
    struct str bytes = STR_INIT;
    size_t n;
    make_tensors(tensors);
    msgpack_packer *packer = stream_begin(writer, RECORD_VALUE, 1);
    pack_key(packer, "step");
    msgpack_pack_int64(packer, 388);
    must(stream_write(writer, tensors, N_TENSORS, &err), &err);
    encode(&bytes, tensors, N_TENSORS, true, SIZE_MAX);
    const char *stream = stream_writer_bytes(writer, &n);
    assert_true(n > bytes.n); /* after the hello */
    assert_memory_equal(stream + n - bytes.n, bytes.data, bytes.n);
    stream_writer_free(writer);
    free_tensors(tensors);
    str_release(&bytes);
}

/* Every flipped bit is noticed, at the latest where the record would end. */
static void test_every_bit(void **state)
{
    (void)state;
    struct named_tensor tensors[N_TENSORS];
    struct str bytes = STR_INIT;
    make_tensors(tensors);
    encode(&bytes, tensors, N_TENSORS, true, SIZE_MAX);
    for (size_t bit = 0; bit < bytes.n * 8; bit++) {
        struct decoder decoder = {.sums = true, .options = {.header_bytes = 1 << 20}};
        struct record record = {0};
        struct error err = ERROR_INIT;
        bytes.data[bit / 8] ^= (char)(1 << (bit % 8));
        decoder_start(&decoder, &record);
        feed(&decoder, bytes.data, bytes.n, 7, &err);
        if (!err.code && decoder_done(&decoder))
            fail_msg("bit %zu was flipped and not noticed", bit);
        bytes.data[bit / 8] ^= (char)(1 << (bit % 8));
        decoder_release(&decoder);
        record_release(&record);
    }
    free_tensors(tensors);
    str_release(&bytes);
}

/* Without sums of bodies, damage at worst changes data of the same shape. */
static void test_bodies_without_sums(void **state)
{
    (void)state;
    struct named_tensor tensors[N_TENSORS];
    struct str bytes = STR_INIT;
    make_tensors(tensors);
    encode(&bytes, tensors, N_TENSORS, false, SIZE_MAX);
    for (size_t at = 0; at < bytes.n; at++) {
        struct decoder decoder = {.options = {.header_bytes = 1 << 20}};
        struct record record = {0};
        struct error err = ERROR_INIT;
        char before = bytes.data[at];
        bytes.data[at] = (char)0xff;
        decoder_start(&decoder, &record);
        feed(&decoder, bytes.data, bytes.n, SIZE_MAX, &err);
        if (!err.code && decoder_done(&decoder)) {
            assert_int_equal(record.n_tensors, N_TENSORS);
            for (int i = 0; i < N_TENSORS; i++)
                assert_int_equal(tensor_bytes(&record.tensors[i].tensor),
                                 tensor_bytes(&tensors[i].tensor));
        }
        bytes.data[at] = before;
        decoder_release(&decoder);
        record_release(&record);
    }
    free_tensors(tensors);
    str_release(&bytes);
}

static int refuse_values(void *context, const struct record *record, struct error *err)
{
    *(int *)context += 1;
    return error_set(err, ERR_PROTOCOL, "record '%s' here", record_kind_name(record->kind));
}

static int refuse_memory(void *context, struct tensor *t, const struct tensor *like, size_t bytes,
                         struct error *err)
{
    (void)t, (void)like;
    *(size_t *)context = bytes;
    return error_set(err, ERR_OS, "no");
}

static void failing(struct decoder_options options, const struct str *bytes, int code,
                    const char *text)
{
    struct decoder decoder = {.sums = true, .options = options};
    struct record record = {0};
    struct error err = ERROR_INIT;
    decoder_start(&decoder, &record);
    feed(&decoder, bytes->data, bytes->n, SIZE_MAX, &err);
    assert_int_equal(err.code, code);
    assert_string_equal(err.text, text);
    decoder_release(&decoder);
    record_release(&record);
}

static void test_options(void **state)
{
    (void)state;
    struct named_tensor tensors[N_TENSORS];
    struct str bytes = STR_INIT;
    int called = 0;
    size_t asked = 0;
    make_tensors(tensors);
    encode(&bytes, tensors, N_TENSORS, true, SIZE_MAX);
    failing((struct decoder_options){.header = refuse_values, .context = &called}, &bytes,
            ERR_PROTOCOL, "record 'value' here");
    assert_int_equal(called, 1);
    failing((struct decoder_options){.alloc = refuse_memory, .context = &asked}, &bytes, ERR_OS,
            "no");
    assert_int_equal(asked, 24);
    failing((struct decoder_options){.tensor_bytes = 40}, &bytes, ERR_DATA,
            "tensor 'label': a record with more than 40 bytes is beyond the limit");
    failing((struct decoder_options){.header_bytes = 100}, &bytes, ERR_DATA,
            "a header of 261 bytes is beyond the limit of 100");
    free_tensors(tensors);
    str_release(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),    cmocka_unit_test(test_streams_agree),
        cmocka_unit_test(test_every_bit), cmocka_unit_test(test_bodies_without_sums),
        cmocka_unit_test(test_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
