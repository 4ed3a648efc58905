/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/memory.h"
#include "wire/encoder.h"

#define GATHER_BYTES ((size_t)64 << 10)

struct stream_writer {
    int fd; /* -1: memory */
    char *name, *producer;
    int64_t expected, count;
    bool hello;
    int failed;
    bool (*gives_up)(void); /* NULL: waits without limit */
    struct str waiting;     /* buffered bytes; all bytes if the writer collects in memory */
    struct encoder encoder;
    struct encoder_bodies bodies;
};

struct stream_writer *stream_writer_new(int fd, const char *name, const char *producer,
                                        int64_t expected)
{
    struct stream_writer *writer = mem_alloc(sizeof *writer);
    writer->fd = fd;
    writer->name = mem_strdup(name);
    writer->producer = mem_strdup(producer);
    writer->expected = expected;
    return writer;
}

struct stream_writer *stream_writer_new_memory(const char *producer, int64_t expected)
{
    return stream_writer_new(-1, "memory", producer, expected);
}

const void *stream_writer_bytes(const struct stream_writer *writer, size_t *n)
{
    *n = writer->waiting.n;
    return str_text(&writer->waiting);
}

void stream_writer_free(struct stream_writer *writer)
{
    if (!writer)
        return;
    str_release(&writer->waiting);
    encoder_release(&writer->encoder);
    encoder_bodies_release(&writer->bodies);
    mem_free(writer->name);
    mem_free(writer->producer);
    mem_free(writer);
}

void stream_writer_give_up(struct stream_writer *writer, bool (*gives_up)(void))
{
    writer->gives_up = gives_up;
}

/* Writes both vectors completely. */
static int write_vectors(struct stream_writer *writer, struct iovec vectors[2], struct error *err)
{
    int first = 0;
    for (;;) {
        while (first < 2 && !vectors[first].iov_len)
            first++;
        if (first == 2)
            return 0;
        if (writer->gives_up && writer->gives_up()) {
            struct pollfd fd = {.fd = writer->fd, .events = POLLOUT};
            if (poll(&fd, 1, 0) <= 0)
                return writer->failed = error_set(err, ERR_CANCELLED,
                                                  "%s: interrupted; nobody reads", writer->name);
        }
        ssize_t result = writev(writer->fd, vectors + first, 2 - first);
        if (result < 0 && errno == EAGAIN)
            poll(&(struct pollfd){.fd = writer->fd, .events = POLLOUT}, 1, -1);
        else if (result < 0 && errno != EINTR)
            return writer->failed = error_set_errno(err, ERR_IO, "%s: writing", writer->name);
        for (size_t left = result > 0 ? (size_t)result : 0; left; first += left > 0) {
            size_t taken = left < vectors[first].iov_len ? left : vectors[first].iov_len;
            vectors[first].iov_base = (char *)vectors[first].iov_base + taken;
            vectors[first].iov_len -= taken;
            left -= taken;
        }
    }
}

/* Buffers the bytes, or writes them together with the buffered ones. */
static int put(struct stream_writer *writer, const void *bytes, size_t n, struct error *err)
{
    if (writer->fd < 0 || writer->waiting.n + n <= GATHER_BYTES) {
        str_append_bytes(&writer->waiting, bytes, n);
        return 0;
    }
    struct iovec vectors[2] = {{writer->waiting.data, writer->waiting.n},
                               {(void *)(uintptr_t)bytes, n}};
    int status = write_vectors(writer, vectors, err);
    str_clear(&writer->waiting);
    return status;
}

msgpack_packer *stream_begin(struct stream_writer *writer, enum record_kind kind, int n_fields)
{
    return encoder_begin(&writer->encoder, kind, n_fields);
}

static int put_record(struct stream_writer *writer, const struct named_tensor *tensors,
                      int n_tensors, struct error *err)
{
    struct str *header = &writer->encoder.header;
    if (encoder_finish(&writer->encoder, tensors, n_tensors, err) ||
        put(writer, header->data, header->n, err))
        return err->code;
    if (!n_tensors)
        return 0;
    /* Data is hashed and written in blocks that stay in the cache. */
    struct encoder_piece piece;
    encoder_bodies(&writer->bodies, tensors, n_tensors, true);
    while (encoder_next(&writer->bodies, CHECKSUM_BLOCK_BYTES, &piece))
        if (put(writer, piece.bytes ? piece.bytes : piece.tag, piece.n, err))
            return err->code;
    return 0;
}

/* Puts the hello before a header that is already begun. */
static int put_hello(struct stream_writer *writer, struct error *err)
{
    struct encoder begun = writer->encoder;
    writer->hello = true;
    writer->encoder = (struct encoder){0};
    msgpack_packer *packer = stream_begin(writer, RECORD_HELLO, 3 + (writer->expected >= 0));
    pack_key_int(packer, "major", STREAM_MAJOR);
    pack_key_int(packer, "minor", STREAM_MINOR);
    pack_key_text(packer, "producer", writer->producer);
    if (writer->expected >= 0)
        pack_key_int(packer, "records", writer->expected);
    int status = put_record(writer, NULL, 0, err);
    encoder_release(&writer->encoder);
    writer->encoder = begun;
    return status;
}

static int check_failed(const struct stream_writer *writer, struct error *err)
{
    if (!writer->failed)
        return 0;
    return error_set(err, writer->failed, "%s: written again after an error", writer->name);
}

int stream_write(struct stream_writer *writer, const struct named_tensor *tensors, int n_tensors,
                 struct error *err)
{
    enum record_kind kind = writer->encoder.kind;
    error_clear(err);
    if (check_failed(writer, err))
        return err->code;
    if (!writer->hello && put_hello(writer, err))
        return err->code;
    int status = put_record(writer, tensors, n_tensors, err);
    writer->count += !status && kind != RECORD_END && kind != RECORD_ERROR;
    return status;
}

int stream_flush(struct stream_writer *writer, struct error *err)
{
    if (check_failed(writer, err))
        return err->code;
    if (writer->fd < 0 || !writer->waiting.n)
        return 0;
    struct iovec vectors[2] = {{writer->waiting.data, writer->waiting.n}, {NULL, 0}};
    int status = write_vectors(writer, vectors, err);
    str_clear(&writer->waiting);
    return status;
}

int stream_finish(struct stream_writer *writer, struct error *err)
{
    msgpack_packer *packer = stream_begin(writer, RECORD_END, 1);
    pack_key_int(packer, "records", writer->count);
    if (stream_write(writer, NULL, 0, err))
        return err->code;
    return stream_flush(writer, err);
}

void stream_begin_anew(struct stream_writer *writer)
{
    writer->hello = false;
    writer->count = 0;
    writer->expected = -1;
}

void stream_write_error(struct stream_writer *writer, const char *tool, const struct error *cause)
{
    struct error ignored = ERROR_INIT;
    msgpack_packer *packer = stream_begin(writer, RECORD_ERROR, 3);
    pack_key_text(packer, "tool", tool);
    pack_key_int(packer, "code", cause->code);
    pack_key_text(packer, "text", cause->text);
    if (!stream_write(writer, NULL, 0, &ignored))
        stream_flush(writer, &ignored);
}
