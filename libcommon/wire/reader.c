/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "wire/body.h"
#include "wire/input.h"
#include "wire/internal.h"
#include "wire/validate.h"

#define PREFIX_BYTES 5
#define BIG_HEADER ((size_t)1 << 20) /* worth asking whether it can be there */

struct stream_reader {
    struct input in;
    char *name;
    bool in_stream, seen, stopped, sums;
    int failed; /* code of the error that ended reading */
    int64_t expected, count;
};

static struct stream_reader *reader_new(const char *name)
{
    struct stream_reader *reader = mem_alloc(sizeof *reader);
    reader->name = mem_strdup(name);
    reader->expected = -1;
    return reader;
}

struct stream_reader *stream_reader_new(int fd, const char *name)
{
    struct stream_reader *reader = reader_new(name);
    input_init(&reader->in, fd);
    return reader;
}

struct stream_reader *stream_reader_new_memory(const void *data, size_t n, const char *name)
{
    struct stream_reader *reader = reader_new(name);
    input_init_memory(&reader->in, data, n);
    return reader;
}

void stream_reader_free(struct stream_reader *reader)
{
    if (!reader)
        return;
    input_release(&reader->in);
    mem_free(reader->name);
    mem_free(reader);
}

void stream_reader_on_wait(struct stream_reader *reader, int (*wait)(void *context, struct error *),
                           void *context)
{
    reader->in.wait = wait;
    reader->in.context = context;
}

int64_t stream_reader_expected(const struct stream_reader *reader)
{
    return reader->expected;
}

int64_t stream_reader_count(const struct stream_reader *reader)
{
    return reader->count;
}

const char *stream_reader_name(const struct stream_reader *reader)
{
    return reader->name;
}

bool stream_reader_stopped(const struct stream_reader *reader)
{
    return reader->stopped;
}

static int truncated(struct stream_reader *reader, struct error *err)
{
    uint64_t bytes = reader->in.offset + (reader->in.end - reader->in.start);
    return error_set(err, ERR_DATA,
                     "truncated after %llu bytes: no trailer, the stage before did not finish",
                     (unsigned long long)bytes);
}

/* What the input looks like that is no stream; `start` has n bytes. */
static const char *guess(const uint8_t *start, size_t n)
{
    static const struct {
        const char *magic, *what;
    } known[] = {
        {"\x93NUMPY", ": looks like a .npy file"},
        {"PK\x03\x04", ": looks like a .npz or zip file"},
        {"\x1f\x8b", ": looks like a gzip file"},
        {"\x28\xb5\x2f\xfd", ": looks like a zstd file"},
        {"\x7f"
         "ELF",
         ": looks like a program"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (n >= strlen(known[i].magic) && !memcmp(start, known[i].magic, strlen(known[i].magic)))
            return known[i].what;
    for (size_t i = 0; i < n; i++)
        if (start[i] >= 0x7f || (start[i] < ' ' && (start[i] < '\t' || start[i] > '\r')))
            return "";
    return ": looks like text";
}

static int not_a_record(struct stream_reader *reader, struct error *err)
{
    struct input *in = &reader->in;
    if (in->offset)
        return error_set(err, ERR_DATA, "damaged: no record starts at byte %llu",
                         (unsigned long long)in->offset);
    size_t n = in->end - in->start;
    return error_set(err, ERR_DATA, "not a tf-tools stream%s",
                     guess(in->data + in->start, n < 64 ? n : 64));
}

/* The length of the next header; *more is false where the input may end. */
static int read_prefix(struct stream_reader *reader, size_t *length, bool *more, struct error *err)
{
    struct input *in = &reader->in;
    size_t got;
    if (input_peek(in, PREFIX_BYTES, &got, err))
        return err->code;
    *more = got > 0 || reader->in_stream;
    if (!got && !reader->seen)
        return error_set(err, ERR_DATA, "empty: no stream");
    if (!*more)
        return 0;
    const uint8_t *p = in->data + in->start;
    if (got && *p != 0xce)
        return not_a_record(reader, err);
    if (got < PREFIX_BYTES)
        return truncated(reader, err);
    *length = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
    if (*length > LIMIT_HEADER_BYTES)
        return error_set(err, ERR_DATA, "a header of %zu bytes is beyond the limit of %zu", *length,
                         LIMIT_HEADER_BYTES);
    input_skip(in, PREFIX_BYTES);
    return 0;
}

static int read_header_bytes(struct stream_reader *reader, struct record *record, size_t n,
                             struct error *err)
{
    if (n > record->bytes_capacity) {
        if (n >= BIG_HEADER && !input_may_have(&reader->in, n))
            return truncated(reader, err);
        mem_free(record->bytes);
        record->bytes_capacity = n < 4096 ? 4096 : n;
        record->bytes = mem_try(record->bytes_capacity);
        if (!record->bytes) {
            record->bytes_capacity = 0;
            return error_set(err, ERR_OS, "no memory for a header of %zu bytes", n);
        }
    }
    for (size_t done = 0, got; done < n; done += got) {
        if (input_read(&reader->in, record->bytes + done, n - done, &got, err))
            return err->code;
        if (!got)
            return truncated(reader, err);
    }
    return 0;
}

static int damaged(const struct record *record, struct error *err)
{
    return error_set(err, ERR_DATA, "damaged: the checksum of the header at byte %llu is wrong",
                     (unsigned long long)record->offset);
}

static uint64_t read_uint64(const uint8_t *p)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value = value << 8 | p[i];
    return value;
}

static int check_sum(const struct record *record, size_t n, struct error *err)
{
    static const char key[] = "\xa3sum\xcf";
    const uint8_t *header = record->bytes;
    if (n < sizeof key - 1 + 8 || memcmp(header + n - SUM_BYTES - 4, key, sizeof key - 1))
        return damaged(record, err);
    if (XXH3_64bits(header, n - SUM_BYTES) != read_uint64(header + n - 8))
        return damaged(record, err);
    return 0;
}

static int unpack(struct record *record, size_t n, struct error *err)
{
    if (!record->zone && !(record->zone = msgpack_zone_new(MSGPACK_ZONE_CHUNK_SIZE)))
        return error_set(err, ERR_OS, "no memory for a header of %zu bytes", n);
    msgpack_zone_clear(record->zone);
    size_t offset = 0;
    int result =
        msgpack_unpack((const char *)record->bytes, n, &offset, record->zone, &record->header);
    if (result == MSGPACK_UNPACK_NOMEM_ERROR)
        return error_set(err, ERR_OS, "no memory for a header of %zu bytes", n);
    if (result != MSGPACK_UNPACK_SUCCESS || offset != n)
        return error_set(err, ERR_DATA, "malformed header");
    return 0;
}

static int parse_kind(struct record *record, struct error *err)
{
    const msgpack_object *name = record_field(&record->header, "kind");
    if (!name || name->type != MSGPACK_OBJECT_STR)
        return error_set(err, ERR_DATA, "a record without a kind");
    if (!record_parse_kind(name, &record->kind))
        return error_set(err, ERR_DATA, "unknown record kind '%.*s'",
                         (int)(name->via.str.size < 64 ? name->via.str.size : 64),
                         name->via.str.ptr);
    return 0;
}

static int take_hello(struct stream_reader *reader, const struct record *record, struct error *err)
{
    int64_t major, minor;
    if (reader->in_stream)
        return error_set(err, ERR_DATA, "a stream starts before the trailer of the one before");
    if (!record_get_int(&record->header, "major", &major) ||
        !record_get_int(&record->header, "minor", &minor))
        return error_set(err, ERR_DATA, "a hello without a version");
    if (major != STREAM_MAJOR)
        return error_set(err, ERR_PROTOCOL, "stream format %lld.%lld, but this program reads %d.%d",
                         (long long)major, (long long)minor, STREAM_MAJOR, STREAM_MINOR);
    if (!record_get_int(&record->header, "records", &reader->expected))
        reader->expected = -1;
    if (!record_get_bool(&record->header, "sums", &reader->sums))
        reader->sums = true;
    reader->in_stream = reader->seen = true;
    reader->count = 0;
    return 0;
}

static int take_end(struct stream_reader *reader, const struct record *record, struct error *err)
{
    int64_t n_records;
    if (!record_get_int(&record->header, "records", &n_records))
        return error_set(err, ERR_DATA, "a trailer without a record count");
    if (n_records != reader->count)
        return error_set(err, ERR_DATA, "the trailer counts %lld records, but there are %lld",
                         (long long)n_records, (long long)reader->count);
    reader->in_stream = false;
    return 0;
}

static int take_error(struct stream_reader *reader, struct record *record, struct error *err)
{
    int64_t code;
    const char *tool;
    if (!record_get_text(&record->header, "tool", &record->arena, &tool))
        tool = "the stage before";
    if (!record_get_int(&record->header, "code", &code) || code < 1 || code > 255)
        code = ERR_DATA;
    reader->stopped = true;
    return error_set(err, (int)code, "stopped by %s", tool);
}

static int read_one(struct stream_reader *reader, struct record *record, bool *more,
                    struct error *err)
{
    size_t n = 0;
    record->offset = reader->in.offset;
    if (read_prefix(reader, &n, more, err) || !*more)
        return err->code;
    if (read_header_bytes(reader, record, n, err) || check_sum(record, n, err) ||
        header_validate(record->bytes, n, err) || unpack(record, n, err) || parse_kind(record, err))
        return err->code;
    if (record->kind != RECORD_HELLO && !reader->in_stream)
        return error_set(err, ERR_DATA, "a stream starts with record '%s', not with a hello",
                         record_kind_name(record->kind));
    int status = body_read(&reader->in, record, reader->sums, err);
    return status == BODY_TRUNCATED ? truncated(reader, err) : status;
}

static int read_next(struct stream_reader *reader, struct record *record, bool *more,
                     struct error *err)
{
    for (;;) {
        record_release_tensors(record);
        if (read_one(reader, record, more, err))
            return err->code;
        if (!*more)
            return 0;
        int status = 0;
        switch (record->kind) {
        case RECORD_HELLO:
            status = take_hello(reader, record, err);
            break;
        case RECORD_END:
            status = take_end(reader, record, err);
            break;
        case RECORD_ERROR:
            return take_error(reader, record, err);
        default:
            reader->count++;
            return 0;
        }
        if (status)
            return status;
    }
}

int stream_read(struct stream_reader *reader, struct record *record, bool *more, struct error *err)
{
    if (reader->failed)
        return error_set(err, reader->failed, "%s: read again after an error", reader->name);
    error_clear(err);
    if (!read_next(reader, record, more, err))
        return 0;
    reader->failed = err->code;
    if (reader->in.wait_failed)
        return err->code;
    return error_prefix(err, "%s: ", reader->name);
}
