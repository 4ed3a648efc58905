/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of a peer: decoder, hellos, the states of a link. A fuzzer does not find a checksum, so
 * each input is sent twice: as it is, and as a list of frames (two bytes that say how many bytes of
 * header follow, these, and the same for the body), each header with its right checksum, behind a
 * hello and a ping that open the link. Whatever comes, the link must end when the bytes do, once.
 */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/fuzz_stream.h"
#include "transport/channel/shared.h"
#include "transport/link/buffer_pool.h"
#include "transport/link/link_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int n_closed;

static int hello(void *context, struct link *link, struct error *err)
{
    (void)context, (void)link, (void)err;
    return 0;
}

static void opened(void *context, struct link *link)
{
    (void)context, (void)link;
}

static void closed(void *context, struct link *link, const struct error *why)
{
    (void)context, (void)link;
    if (!*why->text)
        abort();
    n_closed++;
}

static void record(void *user, struct link *link, struct record *record)
{
    struct str text = STR_INIT;
    (void)user, (void)link;
    for (int i = 0; i < record->n_tensors; i++)
        tensor_print(&text, &record->tensors[i].tensor, 100);
    str_release(&text);
}

static bool has_closed(void *context)
{
    (void)context;
    return n_closed > 0;
}

static void assemble(struct str *stream, const uint8_t *data, size_t size)
{
    static const char greeting[] = "\x88\xa4kind\xa5hello\xa5major\x01\xa5minor\x00\xa3job\xa0"
                                   "\xa4task\xa4ps:0\xabincarnation\x01\xa4sums\xc2";
    static const char ping[] = "\x82\xa4kind\xa4ping";
    append_header(stream, greeting, sizeof greeting - 1);
    append_header(stream, ping, sizeof ping - 1);
    append_records(stream, data, size);
}

static void receive(struct loop *loop, const struct link_config *config, const void *bytes,
                    size_t n)
{
    int pair[2], size = 4 << 20;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair))
        abort();
    setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    n_closed = 0;
    struct link *link = link_new(loop, config, channel_with_fds(pair[0]), "fuzz", NULL, LINK_LOCAL);
    link_retain(link);
    if (write(pair[1], bytes, n) < 0 && n)
        abort();
    shutdown(pair[1], SHUT_WR);
    if (!loop_run_until(loop, has_closed, NULL, 5) || n_closed != 1)
        abort();
    link_release(link);
    close(pair[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct loop *loop;
    struct error err = ERROR_INIT;
    struct str stream = STR_INIT;
    if (!loop && !(loop = loop_new(&err)))
        abort();
    struct link_config config = {.self = {"worker:0", 1},
                                 .producer = "fuzz",
                                 .lease = 60,
                                 .handshake = 60,
                                 .record_bytes = 1 << 20,
                                 .shared_bytes = SHARED_MIN,
                                 .buffer_pool = buffer_pool_new(1 << 20),
                                 .hello = hello,
                                 .opened = opened,
                                 .closed = closed,
                                 .record = record};
    receive(loop, &config, data, size);
    assemble(&stream, data, size);
    receive(loop, &config, stream.data, stream.n);
    loop_run_posted(loop);
    str_release(&stream);
    buffer_pool_free(config.buffer_pool);
    return 0;
}
