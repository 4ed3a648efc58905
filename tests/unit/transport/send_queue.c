/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes that a link has to write: in whatever sizes they are put in and taken out, they are
 * those of the records one after the other, if these are equally urgent; more urgent records come
 * before, and between the bins of others under way. A link that ends in the middle gives up the
 * rest, once.
 */
#include <string.h>

#include "base/memory.h"
#include "lib/unit.h"
#include "transport/link/send_queue.h"
#include "wire/decoder.h"

#define TENSORS 4

struct scene {
    struct send_queue out;
    struct named_tensor tensors[TENSORS];
    struct str put, written;
    uint64_t seed;
};

static void open_scene(struct scene *s, uint64_t seed)
{
    static const int64_t counts[TENSORS] = {0, 7, 5000, 300000}; /* copied, and shared */
    struct error err = ERROR_INIT;
    *s = (struct scene){.seed = seed};
    send_queue_init(&s->out, seed % 2, (size_t)1 << (14 + seed % 8));
    for (int i = 0; i < TENSORS; i++) {
        struct shape shape = shape_vector(counts[i]);
        s->tensors[i].name = "x";
        assert_int_equal(tensor_alloc(&s->tensors[i].tensor, FLOAT32, &shape, &err), 0);
        for (int64_t k = 0; k < counts[i]; k++)
            ((float *)s->tensors[i].tensor.data)[k] = (float)(k * (i + 1));
    }
}

static void close_scene(struct scene *s)
{
    send_queue_release(&s->out);
    for (int i = 0; i < TENSORS; i++)
        tensor_release(&s->tensors[i].tensor);
    str_release(&s->put);
    str_release(&s->written);
}

/* Encodes the record by the encoder alone. */
static void expect(struct scene *s, const struct named_tensor *tensors, int n)
{
    struct encoder_bodies bodies = {.bin_bytes = s->out.encoder.bin_bytes};
    struct encoder_piece piece;
    const struct str *header = &s->out.encoder.header;
    str_append_bytes(&s->put, header->data, header->n);
    encoder_bodies(&bodies, tensors, n, s->out.sums);
    while (encoder_next(&bodies, CHECKSUM_BLOCK_BYTES, &piece))
        str_append_bytes(&s->put, piece.bytes ? piece.bytes : piece.tag, piece.n);
    encoder_bodies_release(&bodies);
}

static void put(struct scene *s)
{
    struct error err = ERROR_INIT;
    int which = (int)(unit_random(&s->seed) % (TENSORS + 1)), n = which < TENSORS;
    const struct named_tensor *tensors = n ? &s->tensors[which] : NULL;
    pthread_mutex_lock(&s->out.lock);
    encoder_begin(&s->out.encoder, RECORD_VALUE, 0);
    assert_int_equal(encoder_finish(&s->out.encoder, tensors, n, &err), 0);
    expect(s, tensors, n);
    assert_int_equal(send_queue_put(&s->out, 0, tensors, n, &err), 0);
    pthread_mutex_unlock(&s->out.lock);
}

/* One system call, which takes some of the bytes offered. Returns false if none are left. */
static bool write_some(struct scene *s, size_t limit)
{
    struct iovec vectors[SEND_QUEUE_WINDOW];
    int n = send_queue_offer(&s->out, limit, vectors);
    size_t offered = 0, taken = 0;
    for (int i = 0; i < n; i++)
        offered += vectors[i].iov_len;
    if (!n)
        return false;
    size_t takes = unit_random(&s->seed) % 4 ? offered : unit_random(&s->seed) % (offered + 1);
    for (int i = 0; i < n && taken < takes; i++) {
        size_t part = takes - taken < vectors[i].iov_len ? takes - taken : vectors[i].iov_len;
        str_append_bytes(&s->written, vectors[i].iov_base, part);
        taken += part;
    }
    send_queue_advance(&s->out, taken);
    return true;
}

static bool take(struct scene *s)
{
    pthread_mutex_lock(&s->out.lock);
    bool any = send_queue_take(&s->out);
    pthread_mutex_unlock(&s->out.lock);
    return any;
}

static void the_bytes_are_those_of_the_records(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct scene s;
        open_scene(&s, seed);
        for (int round = 0; round < 10; round++) {
            for (uint64_t n = unit_random(&s.seed) % 6; n > 0; n--)
                put(&s);
            if (!take(&s))
                continue;
            for (int more = 4; write_some(&s, (size_t)1 << (10 + unit_random(&s.seed) % 12));)
                if (unit_random(&s.seed) % 4 == 0 && more-- > 0)
                    put(&s);
        }
        while (take(&s))
            while (write_some(&s, 1 << 20))
                ;
        assert_int_equal(s.written.n, s.put.n);
        assert_memory_equal(s.written.data, s.put.data, s.put.n);
        assert_true(s.out.put == s.put.n);
        close_scene(&s);
    }
}

static void what_is_left_is_given_up_once(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct scene s;
        open_scene(&s, seed);
        for (int i = 0; i < 6; i++)
            put(&s);
        take(&s);
        for (uint64_t n = unit_random(&s.seed) % 6; n > 0; n--)
            if (!write_some(&s, (size_t)1 << (10 + unit_random(&s.seed) % 12)))
                break;
        put(&s);
        assert_true(s.written.n <= s.put.n);
        assert_memory_equal(s.written.n ? s.written.data : "", s.put.data, s.written.n);
        close_scene(&s);
    }
}

/* ---- priority ---- */

#define HUGE_COUNT (16 << 20) /* elements: 64 MiB */
#define BIN ((size_t)256 << 10)
#define WINDOW ((size_t)1 << 20)

static void put_as(struct send_queue *out, enum record_kind kind, int64_t id, int32_t priority,
                   const struct named_tensor *tensor)
{
    struct error err = ERROR_INIT;
    pthread_mutex_lock(&out->lock);
    msgpack_packer *packer = encoder_begin(&out->encoder, kind, 1);
    pack_key(packer, "id");
    msgpack_pack_int64(packer, id);
    assert_int_equal(encoder_finish(&out->encoder, tensor, tensor != NULL, &err), 0);
    assert_int_equal(send_queue_put(out, priority, tensor, tensor != NULL, &err), 0);
    pthread_mutex_unlock(&out->lock);
}

/* Reads the written bytes as a link does, and notes ids as the records end. */
struct reading {
    struct decoder decoders[LIMIT_NESTED + 1];
    struct record records[LIMIT_NESTED + 1];
    int depth, deepest;
    int64_t ids[4096];
    size_t ends[4096]; /* by record: its end in the stream */
    int n;
    size_t bytes;
};

static struct reading *reading_new(bool sums)
{
    struct reading *r = mem_alloc(sizeof *r);
    r->decoders[0].options.nests = true;
    r->decoders[0].sums = sums;
    decoder_start(&r->decoders[0], &r->records[0]);
    return r;
}

static void reading_free(struct reading *r)
{
    for (int i = 0; i <= r->deepest; i++) {
        decoder_release(&r->decoders[i]);
        record_release(&r->records[i]);
    }
    mem_free(r);
}

static void end_record(struct reading *r)
{
    assert_true(record_get_int(&r->records[r->depth].header, "id", &r->ids[r->n]));
    r->ends[r->n++] = r->bytes;
    if (r->depth) {
        r->depth--;
        decoder_resume(&r->decoders[r->depth], &r->decoders[r->depth + 1]);
    } else {
        decoder_start(&r->decoders[0], &r->records[0]);
    }
}

static void read_bytes(struct reading *r, const char *bytes, size_t n)
{
    while (n) {
        struct error err = ERROR_INIT;
        void *out;
        size_t part;
        struct decoder *decoder = &r->decoders[r->depth];
        decoder_want(decoder, &out, &part);
        part = part < n ? part : n;
        memcpy(out, bytes, part);
        bytes += part;
        n -= part;
        r->bytes += part;
        if (decoder_took(decoder, part, &err))
            fail_msg("%s", err.text);
        if (decoder_interrupted(decoder)) {
            assert_true(r->depth++ < LIMIT_NESTED);
            r->deepest = r->depth > r->deepest ? r->depth : r->deepest;
            decoder_nest(&r->decoders[r->depth], decoder, &r->records[r->depth]);
        } else if (decoder_done(decoder)) {
            end_record(r);
        }
    }
}

/* One system call, which takes all bytes offered. Returns false if none are left. */
static bool write_some_of(struct send_queue *out, struct reading *r, size_t limit)
{
    struct iovec vectors[SEND_QUEUE_WINDOW];
    size_t total = 0;
    int n = send_queue_offer(out, limit, vectors);
    for (int i = 0; i < n; i++) {
        read_bytes(r, vectors[i].iov_base, vectors[i].iov_len);
        total += vectors[i].iov_len;
    }
    send_queue_advance(out, total);
    return n;
}

static void write_rest(struct send_queue *out, struct reading *r)
{
    while (write_some_of(out, r, WINDOW))
        ;
    assert_int_equal(r->depth, 0);
    assert_true(out->put == r->bytes);
    assert_int_equal(out->depth, 0);
}

static void make_value(struct named_tensor *named, int64_t n)
{
    struct error err = ERROR_INIT;
    struct shape shape = shape_vector(n);
    named->name = "x";
    assert_int_equal(tensor_alloc(&named->tensor, FLOAT32, &shape, &err), 0);
    memset(named->tensor.data, 1, (size_t)n * sizeof(float));
}

static void what_is_urgent_overtakes_within_a_bin(void **unused)
{
    (void)unused;
    struct send_queue out;
    struct named_tensor huge, small;
    struct reading *r = reading_new(true);
    send_queue_init(&out, true, BIN);
    make_value(&huge, HUGE_COUNT);
    make_value(&small, 16 << 10);
    put_as(&out, RECORD_VALUE, 1, 9, &huge);
    for (int i = 0; i < 3; i++)
        assert_true(write_some_of(&out, r, WINDOW));
    size_t before = r->bytes;
    put_as(&out, RECORD_VALUE, 2, 9, &small); /* as urgent, so it comes after */
    put_as(&out, RECORD_VALUE, 3, 1, &small);
    put_as(&out, RECORD_PING, 4, LINK_FIRST, NULL);
    write_rest(&out, r);
    static const int64_t order[] = {4, 3, 1, 2};
    assert_int_equal(r->n, 4);
    assert_memory_equal(r->ids, order, sizeof order);
    assert_true(r->ends[1] - before < BIN + 70000);
    assert_int_equal(out.overtaking, 2);
    send_queue_release(&out);
    reading_free(r);
    tensor_release(&huge.tensor);
    tensor_release(&small.tensor);
}

/* Each is more urgent than those before, as gradients of earlier layers are. */
static void no_more_come_within_each_other_than_are_read(void **unused)
{
    (void)unused;
    struct send_queue out;
    struct named_tensor value;
    struct reading *r = reading_new(false);
    send_queue_init(&out, false, 16 << 10);
    make_value(&value, 256 << 10);
    for (int i = 0; i < 2 * LIMIT_NESTED; i++) {
        put_as(&out, i % 100 ? RECORD_VALUE : RECORD_REDUCE, i, -i, &value);
        if (i % 2)
            put_as(&out, RECORD_PING, 1000 + i, LINK_FIRST, NULL);
        write_some_of(&out, r, 40 << 10);
    }
    write_rest(&out, r);
    assert_true(r->deepest > LIMIT_NESTED / 2);
    assert_int_equal(r->n, 3 * LIMIT_NESTED);
    send_queue_release(&out);
    reading_free(r);
    tensor_release(&value.tensor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_urgent_overtakes_within_a_bin),
        cmocka_unit_test(no_more_come_within_each_other_than_are_read),
        cmocka_unit_test(the_bytes_are_those_of_the_records),
        cmocka_unit_test(what_is_left_is_given_up_once),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
