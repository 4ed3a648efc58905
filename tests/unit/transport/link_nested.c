/* SPDX-License-Identifier: Apache-2.0
 *
 * Records between the bins of others: a peer that breaks their rules is refused with a reason.
 */
#include <poll.h>

#include "lib/links.h"
#include "wire/encoder.h"

/* Adds the record's bytes; if cut, only the first of a tensor's two bins. */
static void add_record(struct str *bytes, enum record_kind kind, bool is_cut)
{
    struct error err = ERROR_INIT;
    struct encoder encoder = {.bin_bytes = is_cut ? 64 : 0};
    struct encoder_bodies bodies = {.bin_bytes = encoder.bin_bytes};
    struct encoder_piece piece;
    struct named_tensor value = {.name = "x"};
    struct shape shape = shape_vector(32);
    make_tensor(&value.tensor, FLOAT32, &shape);
    msgpack_packer *packer = encoder_begin(&encoder, kind, 1);
    pack_key(packer, "records");
    msgpack_pack_int(packer, 1);
    must(encoder_finish(&encoder, &value, is_cut, &err), &err);
    str_append_bytes(bytes, encoder.header.data, encoder.header.n);
    encoder_bodies(&bodies, &value, is_cut, true);
    for (int i = 0; i < 2 && encoder_next(&bodies, 64, &piece); i++)
        str_append_bytes(bytes, piece.bytes ? piece.bytes : piece.tag, piece.n);
    encoder_bodies_release(&bodies);
    encoder_release(&encoder);
    tensor_release(&value.tensor);
}

/* Adds a peer's hello and ping. */
static void add_welcome(struct str *bytes)
{
    struct error err = ERROR_INIT;
    struct encoder encoder = {0};
    msgpack_packer *packer = encoder_begin(&encoder, RECORD_HELLO, 6);
    static const char *const texts[] = {"producer", "test", "task", ""};
    for (int i = 0; i < 4; i++)
        pack_text(packer, texts[i]);
    pack_key(packer, "minor");
    msgpack_pack_int(packer, STREAM_MINOR);
    pack_key(packer, "major");
    msgpack_pack_int(packer, STREAM_MAJOR);
    pack_key(packer, "incarnation");
    msgpack_pack_int(packer, 1);
    pack_key(packer, "lease");
    msgpack_pack_double(packer, 3);
    must(encoder_finish(&encoder, NULL, 0, &err), &err);
    str_append_bytes(bytes, encoder.header.data, encoder.header.n);
    encoder_begin(&encoder, RECORD_PING, 0);
    must(encoder_finish(&encoder, NULL, 0, &err), &err);
    str_append_bytes(bytes, encoder.header.data, encoder.header.n);
    encoder_release(&encoder);
}

/* The peer sends these bytes after its welcome. */
static void refuses(const struct str *sent, const char *why)
{
    struct end server;
    struct str bytes = STR_INIT;
    char sink[4096];
    end_serve(&server, (struct peers_options){.task = "ps:0", .producer = "test", .no_key = true},
              "127.0.0.1:0");
    add_welcome(&bytes);
    str_append_bytes(&bytes, sent->data, sent->n);
    int fd = socket(server.at.socket.ss_family, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&server.at.socket, server.at.length), 0);
    assert_int_equal(send(fd, bytes.data, bytes.n, MSG_NOSIGNAL), (ssize_t)bytes.n);
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    while (poll(&readable, 1, 5000) == 1 && read(fd, sink, sizeof sink) > 0)
        ;
    close(fd);
    end_wait_closed(&server);
    end_stop(&server);
    str_release(&bytes);
    if (!server.n_opened || !strstr(server.why.text, why))
        fail_msg("opened %d, expected '%s' in: %s", server.n_opened, why, server.why.text);
}

static void records_within_records_have_rules(void **state)
{
    (void)state;
    struct str bytes = STR_INIT;
    add_record(&bytes, RECORD_REDUCE, true);
    add_record(&bytes, RECORD_GRANT, false);
    refuses(&bytes, "a record within a 'reduce' record");
    str_clear(&bytes);
    add_record(&bytes, RECORD_VALUE, true);
    add_record(&bytes, RECORD_END, false);
    refuses(&bytes, "an end within another record");
    str_clear(&bytes);
    for (int i = 0; i <= LIMIT_NESTED; i++)
        add_record(&bytes, RECORD_VALUE, true);
    add_record(&bytes, RECORD_VALUE, true);
    refuses(&bytes, "more than 256 records within each other");
    str_clear(&bytes);
    add_record(&bytes, RECORD_VALUE, true);
    str_append_bytes(&bytes, "\xce\0\0\0\4\x81\xa1k\1", 9);
    refuses(&bytes, "damaged");
    str_clear(&bytes);
    add_record(&bytes, RECORD_VALUE, true);
    str_append_bytes(&bytes, "\xcf\0\0\0\0\0\0\0\0", 9);
    refuses(&bytes, "damaged: no tensor data");
    str_release(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(records_within_records_have_rules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
