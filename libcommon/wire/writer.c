/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "wire/internal.h"

#define GATHER_BYTES ((size_t)64 << 10)
#define MAP_AT 5      /* behind the length: a map with a two-byte count, filled in at the end */
#define KIND_FIELDS 2 /* kind and sum, in every header */

struct stream_writer {
    int fd; /* -1: memory */
    char *name, *producer;
    int64_t expected, count;
    bool hello, sums, finished;
    int failed, n_fields;
    enum record_kind kind;
    struct str waiting; /* gathered bytes; all of them when the writer collects in memory */
    struct str header;
    msgpack_packer packer;
};

static int append(void *header, const char *bytes, size_t n)
{
    str_append_bytes(header, bytes, n);
    return 0;
}

struct stream_writer *stream_writer_new(int fd, const char *name, const char *producer,
                                        int64_t expected)
{
    struct stream_writer *writer = mem_alloc(sizeof *writer);
    writer->fd = fd;
    writer->name = mem_strdup(name);
    writer->producer = mem_strdup(producer);
    writer->expected = expected;
    writer->sums = true;
    msgpack_packer_init(&writer->packer, &writer->header, append);
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
    str_release(&writer->header);
    mem_free(writer->name);
    mem_free(writer->producer);
    mem_free(writer);
}

void stream_writer_skip_sums(struct stream_writer *writer)
{
    writer->sums = false;
}

void pack_text(msgpack_packer *packer, const char *text)
{
    size_t n = strlen(text);
    msgpack_pack_str(packer, n);
    msgpack_pack_str_body(packer, text, n);
}

void pack_key(msgpack_packer *packer, const char *name)
{
    pack_text(packer, name);
}

/* Writes all of the two vectors. */
static int write_vectors(struct stream_writer *writer, struct iovec vectors[2], struct error *err)
{
    int first = 0;
    for (;;) {
        while (first < 2 && !vectors[first].iov_len)
            first++;
        if (first == 2)
            return 0;
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

/* Gathers the bytes, or writes what waits together with them. */
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

static void store_int(uint8_t *p, uint64_t value, int n)
{
    for (int i = n - 1; i >= 0; i--, value >>= 8)
        p[i] = (uint8_t)value;
}

msgpack_packer *stream_begin(struct stream_writer *writer, enum record_kind kind, int n_fields)
{
    static const char start[MAP_AT + 3] = {(char)0xce, 0, 0, 0, 0, (char)0xde, 0, 0};
    str_clear(&writer->header);
    str_append_bytes(&writer->header, start, sizeof start);
    pack_key(&writer->packer, "kind");
    pack_text(&writer->packer, record_kind_name(kind));
    writer->kind = kind;
    writer->n_fields = n_fields;
    return &writer->packer;
}

/* A string tensor has its offsets and its bytes in bins of their own. */
static size_t first_part(const struct tensor *t, size_t bytes)
{
    return t->type == STRING ? (size_t)(tensor_count(t) + 1) * sizeof(uint64_t) : bytes;
}

static size_t n_bins_of(size_t bytes)
{
    return (bytes + LIMIT_BIN_BYTES - 1) / LIMIT_BIN_BYTES;
}

static void pack_tensor(msgpack_packer *packer, const struct named_tensor *named)
{
    const struct tensor *t = &named->tensor;
    size_t bytes = tensor_bytes(t), first = first_part(t, bytes);
    size_t n_bins = n_bins_of(first) + n_bins_of(bytes - first);
    msgpack_pack_map(packer, 5);
    pack_key(packer, "name");
    pack_text(packer, named->name);
    pack_key(packer, "type");
    pack_text(packer, dtype_name(t->type));
    pack_key(packer, "shape");
    msgpack_pack_array(packer, (size_t)t->shape.rank);
    for (int i = 0; i < t->shape.rank; i++)
        msgpack_pack_int64(packer, t->shape.dims[i]);
    pack_key(packer, "bins");
    msgpack_pack_uint64(packer, n_bins + (t->type == STRING && bytes == first));
    pack_key(packer, "bytes");
    msgpack_pack_uint64(packer, bytes);
}

static int check_tensors(const struct named_tensor *tensors, int n_tensors, struct error *err)
{
    if ((size_t)n_tensors > LIMIT_RECORD_TENSORS)
        return error_set(err, ERR_DATA, "%d tensors in a record are beyond the limit of %zu",
                         n_tensors, LIMIT_RECORD_TENSORS);
    for (int i = 0; i < n_tensors; i++) {
        const struct tensor *t = &tensors[i].tensor;
        BUG_ON(t->layout);
        if (!record_name_fits(tensors[i].name))
            return error_set(err, ERR_DATA, "a tensor's name is not fit to print: '%.40s'",
                             tensors[i].name);
        if (!record_carries(t->type))
            return error_set(err, ERR_DATA, "tensor '%s': type '%s' is not carried by streams",
                             tensors[i].name, dtype_name(t->type));
    }
    return 0;
}

static int finish_header(struct stream_writer *writer, const struct named_tensor *tensors,
                         int n_tensors, struct error *err)
{
    struct str *header = &writer->header;
    uint8_t sum[SUM_BYTES] = {0xcf};
    if (n_tensors) {
        pack_key(&writer->packer, "tensors");
        msgpack_pack_array(&writer->packer, (size_t)n_tensors);
        for (int i = 0; i < n_tensors; i++)
            pack_tensor(&writer->packer, &tensors[i]);
    }
    pack_key(&writer->packer, "sum");
    size_t length = header->n - MAP_AT + SUM_BYTES;
    if (length > LIMIT_HEADER_BYTES)
        return error_set(err, ERR_DATA, "a header of %zu bytes is beyond the limit of %zu", length,
                         LIMIT_HEADER_BYTES);
    store_int((uint8_t *)header->data + 1, length, 4);
    store_int((uint8_t *)header->data + MAP_AT + 1,
              (uint64_t)(writer->n_fields + KIND_FIELDS + (n_tensors > 0)), 2);
    store_int(sum + 1, XXH3_64bits(header->data + MAP_AT, header->n - MAP_AT), 8);
    str_append_bytes(header, sum, sizeof sum);
    return 0;
}

static int put_bin(struct stream_writer *writer, XXH3_state_t *sum, const char *data, size_t n,
                   struct error *err)
{
    uint8_t tag[5] = {0xc6};
    store_int(tag + 1, n, 4);
    if (put(writer, tag, sizeof tag, err))
        return err->code;
    for (size_t done = 0, block; done < n; done += block) {
        block = n - done < CHECKSUM_BLOCK_BYTES ? n - done : CHECKSUM_BLOCK_BYTES;
        if (writer->sums)
            XXH3_64bits_update(sum, data + done, block);
        if (put(writer, data + done, block, err))
            return err->code;
    }
    return 0;
}

static int put_part(struct stream_writer *writer, XXH3_state_t *sum, const char *data, size_t n,
                    struct error *err)
{
    for (size_t done = 0, bin; done < n; done += bin) {
        bin = n - done < LIMIT_BIN_BYTES ? n - done : LIMIT_BIN_BYTES;
        if (put_bin(writer, sum, data + done, bin, err))
            return err->code;
    }
    return 0;
}

static int put_tensor(struct stream_writer *writer, XXH3_state_t *sum, const struct tensor *t,
                      struct error *err)
{
    size_t bytes = tensor_bytes(t), first = first_part(t, bytes);
    if (put_part(writer, sum, t->data, first, err))
        return err->code;
    if (t->type == STRING && bytes == first)
        return put_bin(writer, sum, NULL, 0, err);
    return put_part(writer, sum, (const char *)t->data + first, bytes - first, err);
}

static int put_bodies(struct stream_writer *writer, const struct named_tensor *tensors,
                      int n_tensors, struct error *err)
{
    XXH3_state_t sum;
    uint8_t end[SUM_BYTES] = {0xcf};
    bool any = false;
    XXH3_64bits_reset(&sum);
    for (int i = 0; i < n_tensors; i++) {
        any |= tensor_bytes(&tensors[i].tensor) > 0;
        if (put_tensor(writer, &sum, &tensors[i].tensor, err))
            return err->code;
    }
    store_int(end + 1, writer->sums ? XXH3_64bits_digest(&sum) : 0, 8);
    return any ? put(writer, end, sizeof end, err) : 0;
}

static int put_record(struct stream_writer *writer, const struct named_tensor *tensors,
                      int n_tensors, struct error *err)
{
    if (finish_header(writer, tensors, n_tensors, err) ||
        put(writer, writer->header.data, writer->header.n, err))
        return err->code;
    return n_tensors ? put_bodies(writer, tensors, n_tensors, err) : 0;
}

/* The hello goes in front of a header that is already begun. */
static int put_hello(struct stream_writer *writer, struct error *err)
{
    struct str begun = writer->header;
    int n_fields = writer->n_fields;
    writer->hello = true;
    writer->header = (struct str)STR_INIT;
    msgpack_packer *packer =
        stream_begin(writer, RECORD_HELLO, 3 + (writer->expected >= 0) + !writer->sums);
    pack_key(packer, "major");
    msgpack_pack_int(packer, STREAM_MAJOR);
    pack_key(packer, "minor");
    msgpack_pack_int(packer, STREAM_MINOR);
    pack_key(packer, "producer");
    pack_text(packer, writer->producer);
    if (writer->expected >= 0) {
        pack_key(packer, "records");
        msgpack_pack_int64(packer, writer->expected);
    }
    if (!writer->sums) {
        pack_key(packer, "sums");
        msgpack_pack_false(packer);
    }
    int status = put_record(writer, NULL, 0, err);
    str_release(&writer->header);
    writer->header = begun;
    writer->n_fields = n_fields;
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
    enum record_kind kind = writer->kind;
    error_clear(err);
    if (check_failed(writer, err) || check_tensors(tensors, n_tensors, err))
        return err->code;
    if (!writer->hello && put_hello(writer, err))
        return err->code;
    writer->count += kind != RECORD_END && kind != RECORD_ERROR;
    return put_record(writer, tensors, n_tensors, err);
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
    pack_key(packer, "records");
    msgpack_pack_int64(packer, writer->count);
    if (stream_write(writer, NULL, 0, err))
        return err->code;
    return stream_flush(writer, err);
}

void stream_write_error(struct stream_writer *writer, const char *tool, const struct error *cause)
{
    struct error ignored = ERROR_INIT;
    msgpack_packer *packer = stream_begin(writer, RECORD_ERROR, 3);
    pack_key(packer, "tool");
    pack_text(packer, tool);
    pack_key(packer, "code");
    msgpack_pack_int(packer, cause->code);
    pack_key(packer, "text");
    pack_text(packer, cause->text);
    if (!stream_write(writer, NULL, 0, &ignored))
        stream_flush(writer, &ignored);
}
