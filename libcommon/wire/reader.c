/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "wire/decoder.h"
#include "wire/header.h"
#include "wire/input.h"

struct stream_reader {
    struct input in;
    struct decoder decoder;
    char *name;
    char *stopped_by; /* NULL: the previous stage has not failed */
    bool in_stream, seen, owns_file;
    bool cut;   /* the decoder has reported that the input is too short */
    int failed; /* code of the error that ended the reading */
    int64_t expected, count;
    int (*grow)(void *context, struct error *);
};

/* Checks, before memory is allocated for its tensors, that a record comes after the hello. */
static int check_place(void *context, const struct record *record, struct error *err)
{
    struct stream_reader *reader = context;
    if (record->kind != RECORD_HELLO && !reader->in_stream)
        return error_set(err, ERR_DATA, "a stream starts with record '%s', not with a hello",
                         record_kind_name(record->kind));
    return 0;
}

static bool may_have(void *context, size_t n)
{
    struct stream_reader *reader = context;
    reader->cut = !input_may_have(&reader->in, n);
    return !reader->cut;
}

static struct stream_reader *reader_new(const char *name)
{
    struct stream_reader *reader = mem_alloc(sizeof *reader);
    reader->name = mem_strdup(name);
    reader->expected = -1;
    reader->decoder.options =
        (struct decoder_options){.context = reader, .may_have = may_have, .header = check_place};
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

void stream_reader_own_file(struct stream_reader *reader)
{
    reader->owns_file = true;
}

void stream_reader_free(struct stream_reader *reader)
{
    if (!reader)
        return;
    if (reader->owns_file)
        close(reader->in.fd);
    input_release(&reader->in);
    decoder_release(&reader->decoder);
    mem_free(reader->name);
    mem_free(reader->stopped_by);
    mem_free(reader);
}

void stream_reader_on_wait(struct stream_reader *reader, int (*wait)(void *context, struct error *),
                           void *context)
{
    reader->in.wait = wait;
    reader->in.context = context;
}

void stream_reader_on_end(struct stream_reader *reader, int (*grow)(void *context, struct error *),
                          void *context)
{
    reader->grow = grow;
    reader->in.grow_context = context;
}

void stream_reader_go_on(struct stream_reader *reader, int fd)
{
    struct input before = reader->in;
    input_release(&reader->in);
    input_init(&reader->in, fd);
    reader->in.wait = before.wait;
    reader->in.context = before.context;
    reader->in.grow_context = before.grow_context;
    reader->in_stream = reader->seen = false;
    reader->failed = 0;
}

int stream_reader_peek(struct stream_reader *reader, void *bytes, size_t n, size_t *got,
                       struct error *err)
{
    BUG_ON(n > 64);
    if (input_peek(&reader->in, n, got, err))
        return error_prefix(err, "%s: ", reader->name);
    memcpy(bytes, reader->in.data + reader->in.start, *got);
    return 0;
}

int stream_reader_take_rest(struct stream_reader *reader, struct str *bytes, struct error *err)
{
    char block[16384];
    size_t got;
    do {
        if (input_read(&reader->in, block, sizeof block, &got, err))
            return error_prefix(err, "%s: ", reader->name);
        str_append_bytes(bytes, block, got);
    } while (got);
    return 0;
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

int stream_reader_fd(const struct stream_reader *reader)
{
    return reader->in.fd;
}

const char *stream_reader_stopped_by(const struct stream_reader *reader)
{
    return reader->stopped_by;
}

static int truncated(struct stream_reader *reader, struct error *err)
{
    uint64_t bytes = reader->in.offset + (reader->in.end - reader->in.start);
    return error_set(err, ERR_DATA,
                     "truncated after %llu bytes: no trailer, the stage before did not finish",
                     (unsigned long long)bytes);
}

/* Guesses the format of an input that is not a stream; `start` has n bytes. */
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

/* Checks that a record starts here; sets *more to false where the input may end. */
static int check_start(struct stream_reader *reader, bool *more, struct error *err)
{
    struct input *in = &reader->in;
    size_t got;
    in->grow = reader->in_stream || !reader->seen ? reader->grow : NULL;
    if (input_peek(in, HEADER_PREFIX_BYTES, &got, err))
        return err->code;
    *more = got > 0 || reader->in_stream;
    if (!got && !reader->seen)
        return error_set(err, ERR_DATA, "empty: no stream");
    if (!*more)
        return 0;
    if (got && in->data[in->start] != 0xce) {
        size_t n = in->end - in->start;
        return in->offset ? error_set(err, ERR_DATA, "damaged: no record starts at byte %llu",
                                      (unsigned long long)in->offset)
                          : error_set(err, ERR_DATA, "not a tf-tools stream%s",
                                      guess(in->data + in->start, n < 64 ? n : 64));
    }
    return got < HEADER_PREFIX_BYTES ? truncated(reader, err) : 0;
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
    if (!record_get_bool(&record->header, "sums", &reader->decoder.sums))
        reader->decoder.sums = true;
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
    mem_free(reader->stopped_by);
    reader->stopped_by = mem_strdup(tool);
    error_set(err, (int)code, "stopped by %s", tool);
    err->reason = ERROR_STOPPED;
    return err->code;
}

static int read_one(struct stream_reader *reader, struct record *record, bool *more,
                    struct error *err)
{
    decoder_start(&reader->decoder, record);
    if (check_start(reader, more, err) || !*more)
        return err->code;
    while (!decoder_done(&reader->decoder)) {
        void *out;
        size_t n, got; /* in blocks that stay in the cache while they are hashed */
        decoder_want(&reader->decoder, &out, &n);
        n = n < CHECKSUM_BLOCK_BYTES ? n : CHECKSUM_BLOCK_BYTES;
        if (input_read(&reader->in, out, n, &got, err))
            return err->code;
        if (!got)
            return truncated(reader, err);
        if (decoder_took(&reader->decoder, got, err))
            return reader->cut ? truncated(reader, err) : err->code;
    }
    return 0;
}

static int read_next(struct stream_reader *reader, struct record *record, bool *more,
                     struct error *err)
{
    for (;;) {
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
