/* SPDX-License-Identifier: Apache-2.0
 *
 * The record stream: the format between any two of our processes, through pipes, files and sockets.
 * The bytes are described in docs/stream.md; this header is the interface to them.
 *
 *   stream  = hello record* end           a file or pipe holds any number of streams in a row
 *   record  = 0xce u32 (bytes of header)  msgpack's five-byte unsigned int
 *             header                      one msgpack map
 *             bin*                        tensor data, as many as the header says
 *             0xcf u64                    xxh3 of the bodies, only if there are any
 *
 * Reader and writer own their buffers and make at most one system call per small record. Neither is
 * thread-safe; use one per thread.
 */
#ifndef TF_WIRE_RECORD_H
#define TF_WIRE_RECORD_H

#include <msgpack.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "tensor/slice.h"
#include "tensor/tensor.h"
#include "wire/limits.h"

enum record_kind {
    RECORD_HELLO,
    RECORD_GRAPH,
    RECORD_FEED,
    RECORD_FETCH,
    RECORD_STEP,
    RECORD_TENSOR,
    RECORD_PLAN,
    RECORD_TRACE,
    RECORD_ERROR,
    RECORD_END,
    RECORD_REQUEST, /* this and the following: between the processes of a session, on links */
    RECORD_REPLY,
    RECORD_VALUE,
    RECORD_ANNOUNCE,
    RECORD_GRANT,
    RECORD_PING,
    RECORD_REDUCE,
    RECORD_SHARE,
};

const char *record_kind_name(enum record_kind kind); /* "feed" */

/* A named tensor, as a record carries it. */
struct named_tensor {
    const char *name;
    struct tensor tensor;
};

/* A record that was read. `header` is the validated msgpack map; fields are looked up with
 * record_get_*. Tensor memory is reference-counted: share it to keep it. Everything else is valid
 * until the next stream_read or record_release. */
struct record {
    enum record_kind kind;
    msgpack_object header;
    struct named_tensor *tensors;
    int n_tensors;
    uint64_t offset;         /* of the record in the input, for messages */
    struct arena arena;      /* for the user of the record; cleared with it */
    msgpack_object *objects; /* this and the following: memory that the next record reuses */
    size_t objects_capacity;
    unsigned char *bytes;
    size_t bytes_capacity;
    int tensors_capacity;
};

void record_release(struct record *record);

/* Get fields of a msgpack map by name. False if absent or of another type. */
const msgpack_object *record_find(const msgpack_object *map, const char *name, size_t length);
static inline const msgpack_object *record_field(const msgpack_object *map, const char *name)
{
    return record_find(map, name, strlen(name));
}
/* Unsigned; record_get_int covers only 63 bits. */
static inline bool record_get_uint(const msgpack_object *map, const char *name, uint64_t *value)
{
    const msgpack_object *field = record_field(map, name);
    if (!field || field->type != MSGPACK_OBJECT_POSITIVE_INTEGER)
        return false;
    *value = field->via.u64;
    return true;
}
/* The value of a field, or of an item of a list; false for another type, and for NULL. */
static inline bool record_read_int(const msgpack_object *object, int64_t *value)
{
    if (!object || !(object->type == MSGPACK_OBJECT_NEGATIVE_INTEGER ||
                     (object->type == MSGPACK_OBJECT_POSITIVE_INTEGER && object->via.i64 >= 0)))
        return false;
    *value = object->via.i64;
    return true;
}
bool record_read_float(const msgpack_object *object, double *value);
bool record_read_shape(const msgpack_object *object, int64_t least, struct shape *shape);
static inline bool record_get_int(const msgpack_object *map, const char *name, int64_t *value)
{
    return record_read_int(record_field(map, name), value);
}
bool record_get_float(const msgpack_object *map, const char *name, double *value);
bool record_get_bool(const msgpack_object *map, const char *name, bool *value);
const char *record_end_text(const msgpack_object *field);
/* Returns a text within the record, terminated in place, valid as long as the record. NULL if it is
 * absent, of another type, or contains a NUL. */
static inline const char *record_text(const msgpack_object *map, const char *name)
{
    return record_end_text(record_field(map, name));
}
/* Copies a text to the arena, terminated. */
bool record_get_text(const msgpack_object *map, const char *name, struct arena *arena,
                     const char **text);

/* ---- reading ---- */

struct stream_reader;

/* Reads from `fd` (not closed), or from memory for tests and fuzzing. `name` is for messages
 * ("stdin", "digits.tfg"). Never fails. */
struct stream_reader *stream_reader_new(int fd, const char *name);
struct stream_reader *stream_reader_new_memory(const void *data, size_t n, const char *name);
void stream_reader_own_file(struct stream_reader *reader); /* free closes it */
void stream_reader_free(struct stream_reader *reader);

/* Sets a function called before the reader blocks for input: filters flush their output in it,
 * which keeps pipes live. */
void stream_reader_on_wait(struct stream_reader *reader, int (*wait)(void *context, struct error *),
                           void *context);

/* Sets a function called where a file that is still being written ends before a trailer. It returns
 * 0 to try again; any other code makes stream_read fail with it. */
void stream_reader_on_end(struct stream_reader *reader, int (*grow)(void *context, struct error *),
                          void *context);

/* Continues with another file, even after an error; the caller still owns the previous one. */
void stream_reader_go_on(struct stream_reader *reader, int fd);

/* Gets the first bytes, up to n of 64, without consuming them; *got is their number. */
int stream_reader_peek(struct stream_reader *reader, void *bytes, size_t n, size_t *got,
                       struct error *err);

/* Appends all remaining bytes, for input that is not a stream. */
int stream_reader_take_rest(struct stream_reader *reader, struct str *bytes, struct error *err);

/* Reads the next record, skipping hello and end. Returns 0 and sets *more, false at the end of the
 * input. Consecutive streams are read as one. Errors start with the reader's name: ERR_DATA
 * (truncated, damaged, beyond the limits, an unknown kind), ERR_PROTOCOL (another major version),
 * ERR_IO, ERR_OS (no memory); if the input carries an `error` record, its code, "stopped by TOOL"
 * and ERROR_STOPPED. Errors of the function of stream_reader_on_wait are returned unchanged.
 * `record` must be zeroed or have been read into before. */
int stream_read(struct stream_reader *reader, struct record *record, bool *more, struct error *err);

/* Return the records announced by the current stream's hello, or -1; those read; the name. */
int64_t stream_reader_expected(const struct stream_reader *reader);
int64_t stream_reader_count(const struct stream_reader *reader);
const char *stream_reader_name(const struct stream_reader *reader);

/* Returns the descriptor that is being read; -1: memory. */
int stream_reader_fd(const struct stream_reader *reader);

/* Returns the previous stage's name if stream_read failed because that stage did; else NULL. */
const char *stream_reader_stopped_by(const struct stream_reader *reader);

/* ---- writing ---- */

struct stream_writer;

/* Writes to `fd` (not closed). The hello is sent with the first record; expected < 0: unknown. */
struct stream_writer *stream_writer_new(int fd, const char *name, const char *producer,
                                        int64_t expected);
/* Collects the bytes in memory instead; stream_writer_bytes borrows them. */
struct stream_writer *stream_writer_new_memory(const char *producer, int64_t expected);
const void *stream_writer_bytes(const struct stream_writer *writer, size_t *n);
void stream_writer_free(struct stream_writer *writer);

/* Sets a function called when a write would block, and when a signal has interrupted it. If it
 * returns true, the write fails with ERR_CANCELLED, as the reader may have stopped. */
void stream_writer_give_up(struct stream_writer *writer, bool (*gives_up)(void));

/* Starts a header. The caller packs exactly `n_fields` key/value pairs into the returned packer,
 * then calls stream_write. (Kind, tensor list and checksums are added by the writer.) */
msgpack_packer *stream_begin(struct stream_writer *writer, enum record_kind kind, int n_fields);

/* Finishes the header and writes the record with its bodies; small records are buffered until
 * stream_flush or until 64 KiB are waiting. Tensors are in host memory, row-major, and need not
 * outlive the call. */
int stream_write(struct stream_writer *writer, const struct named_tensor *tensors, int n_tensors,
                 struct error *err);

int stream_flush(struct stream_writer *writer, struct error *err);

/* Writes the hello if nothing was written yet, and the trailer; then flushes. */
int stream_finish(struct stream_writer *writer, struct error *err);

/* After stream_finish, begins another stream of unknown length. */
void stream_begin_anew(struct stream_writer *writer);

/* Tells the next stage that this one has failed; best effort, without an error of its own. */
void stream_write_error(struct stream_writer *writer, const char *tool, const struct error *cause);

/* Makes a packer that appends to *out. The helpers for keys and texts are only for such packers. */
void pack_begin(msgpack_packer *packer, struct str *out);
void pack_text_of(msgpack_packer *packer, const char *text, size_t n);
static inline void pack_text(msgpack_packer *packer, const char *text)
{
    pack_text_of(packer, text, strlen(text));
}
static inline void pack_key(msgpack_packer *packer, const char *name)
{
    pack_text(packer, name);
}
static inline void pack_key_text(msgpack_packer *packer, const char *name, const char *text)
{
    pack_text(packer, name);
    pack_text(packer, text);
}
static inline void pack_key_int(msgpack_packer *packer, const char *name, int64_t value)
{
    pack_text(packer, name);
    msgpack_pack_int64(packer, value);
}
static inline void pack_key_uint(msgpack_packer *packer, const char *name, uint64_t value)
{
    pack_text(packer, name);
    msgpack_pack_uint64(packer, value);
}
static inline void pack_key_bool(msgpack_packer *packer, const char *name, bool value)
{
    pack_text(packer, name);
    (value ? msgpack_pack_true : msgpack_pack_false)(packer);
}
static inline void pack_key_array(msgpack_packer *packer, const char *name, size_t n)
{
    pack_text(packer, name);
    msgpack_pack_array(packer, n);
}
static inline void pack_key_map(msgpack_packer *packer, const char *name, size_t n)
{
    pack_text(packer, name);
    msgpack_pack_map(packer, n);
}
static inline void pack_key_float(msgpack_packer *packer, const char *name, double value)
{
    pack_text(packer, name);
    msgpack_pack_double(packer, value);
}

/* ---- feed and fetch records: step, where the data came from, tensors ---- */

struct feed_position { /* source of a feed record, from which `tf-data --after` resumes */
    const char *source;
    int64_t epoch, offset;
    uint64_t seed;
};

/* Returns false if the record does not state its source. */
bool record_get_position(const struct record *record, struct arena *arena,
                         struct feed_position *position);

int stream_write_feed(struct stream_writer *writer, enum record_kind kind, int64_t step,
                      const struct feed_position *position, const struct named_tensor *tensors,
                      int n_tensors, struct error *err);

/* First character of the name of a tensor that is not fed to steps but passed through and written
 * before the fetched tensors, for example the identities of rows. */
#define KEPT_MARK '@'

/* Writes the values that a step has fetched; versions[i] is the version of the variables that
 * tensor i was computed from; below 0: unknown. */
int stream_write_fetches(struct stream_writer *writer, int64_t step, const int64_t *versions,
                         const struct named_tensor *tensors, int n_tensors, struct error *err);
/* Returns the version of a tensor of such a record; -1: unknown. */
int64_t record_version(const struct record *record, const char *name);

/* ---- tensor records of variables: the exchange form of checkpoints ---- */

#define DEFAULT_CONTAINER "default"

struct variable_record {
    const char *container, *name;
    struct tensor value;
    uint64_t updates;
    int64_t step;                /* the last step before it was saved */
    struct variable_slice slice; /* if the variable is a slice */
};

typedef VEC(struct variable_record) variable_records;

/* Adds all variables of a stream, which is read to its end; the caller releases their values, after
 * an error, too. Fields that a record lacks get their defaults; texts go to the arena. ERR_DATA if
 * a record is not of one variable, or of a slice that does not fit its whole. */
int stream_read_variables(struct stream_reader *reader, struct arena *arena,
                          variable_records *variables, struct error *err);

int stream_write_variable(struct stream_writer *writer, const struct variable_record *variable,
                          struct error *err);

#endif
