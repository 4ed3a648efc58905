/* SPDX-License-Identifier: Apache-2.0
 *
 * What a link has to write: whatever sizes are put in and taken out, the bytes are those of the
 * records one after the other; and a link that ends in the middle gives up what is left, once.
 */
#include <string.h>

#include "lib/unit.h"
#include "transport/link/outbox.h"

#define TENSORS 4

struct scene {
    struct outbox out;
    struct named_tensor tensors[TENSORS];
    struct str put, written;
    uint64_t seed;
};

static void open_scene(struct scene *s, uint64_t seed)
{
    static const int64_t counts[TENSORS] = {0, 7, 5000, 300000}; /* copied, and shared */
    struct error err = ERROR_INIT;
    *s = (struct scene){.seed = seed};
    outbox_init(&s->out, seed % 2);
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
    outbox_release(&s->out);
    for (int i = 0; i < TENSORS; i++)
        tensor_release(&s->tensors[i].tensor);
    str_release(&s->put);
    str_release(&s->written);
}

/* What the record is by the encoder alone. */
static void expect(struct scene *s, const struct named_tensor *tensors, int n)
{
    struct encoder_bodies bodies = {0};
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
    assert_int_equal(outbox_put(&s->out, tensors, n, &err), 0);
    pthread_mutex_unlock(&s->out.lock);
}

/* One call of the system, which takes some of what it is offered. False: nothing is left. */
static bool write_some(struct scene *s, size_t limit)
{
    struct iovec vectors[OUTBOX_WINDOW];
    int n = outbox_offer(&s->out, limit, vectors);
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
    outbox_advance(&s->out, taken);
    return true;
}

static bool take(struct scene *s)
{
    pthread_mutex_lock(&s->out.lock);
    bool any = outbox_take(&s->out);
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
            while (write_some(&s, (size_t)1 << (10 + unit_random(&s.seed) % 12)))
                if (unit_random(&s.seed) % 4 == 0)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bytes_are_those_of_the_records),
        cmocka_unit_test(what_is_left_is_given_up_once),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
