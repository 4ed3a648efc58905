/* SPDX-License-Identifier: Apache-2.0
 *
 * Records from bytes that arrive in pieces. The decoder says where the next bytes are to go
 * (decoder_want: its own few bytes, the header's memory, a tensor's memory), the caller puts some
 * there, from wherever, and says how many (decoder_took). So nothing is copied twice, and memory is
 * allocated only for what was checked before.
 *
 *   decoder_start(d, record);
 *   while (!decoder_done(d)) {
 *       decoder_want(d, &out, &n);
 *       got = read(fd, out, n);
 *       if (decoder_took(d, got, err)) ...
 *   }
 *
 * One decoder belongs to one stream and to one thread at a time. It is zero-initialised.
 *
 * On links whole records may arrive between the bins of another (options.nests). At the start of
 * one the decoder is interrupted, and wants nothing, until another decoder has read that record:
 *
 *   if (decoder_interrupted(d)) {
 *       decoder_nest(inner, d, record) ... until decoder_done(inner)
 *       decoder_resume(d, inner);
 *   }
 */
#ifndef TF_WIRE_DECODER_H
#define TF_WIRE_DECODER_H

#include "wire/record.h"

/* Limits and callbacks that a user of the decoder may set. All may be zero. */
struct decoder_options {
    size_t header_bytes; /* largest header; 0: LIMIT_HEADER_BYTES */
    size_t tensor_bytes; /* of a record's tensors together; 0: LIMIT_TENSOR_BYTES each */
    bool nests;          /* whole records may come between the bins of another */
    void *context;       /* for the callbacks */
    /* Returns false if that many bytes cannot come; asked before memory is allocated. */
    bool (*may_have)(void *context, size_t bytes);
    /* Called with the header, before its tensors are allocated: 0 if a record of this kind may come
     * here. */
    int (*header)(void *context, const struct record *record, struct error *err);
    /* Allocates `bytes` bytes for a tensor's data. NULL: the tensor's own memory is used. */
    int (*alloc)(void *context, struct tensor *t, const struct tensor *like, size_t bytes,
                 struct error *err);
};

enum decoder_stage {
    DECODER_DONE,
    DECODER_PREFIX,
    DECODER_HEADER,
    DECODER_BIN_TAG,
    DECODER_BIN_LENGTH,
    DECODER_DATA,
    DECODER_SUM,
    DECODER_INTERRUPTED,
};

struct decoder { /* all private except `options`, `offset` and `sums` */
    struct decoder_options options;
    bool sums;       /* checksums of bodies are present and checked */
    uint64_t offset; /* bytes consumed so far, over all records */
    struct record *record;
    enum decoder_stage stage;
    uint8_t small[9];
    uint8_t *out;               /* where the stage's bytes go */
    size_t need, done;          /* bytes in this stage */
    const msgpack_object *list; /* of the tensors in the header */
    int64_t n_bins, bin;        /* of the current tensor, the last in the record */
    size_t bytes, got;          /* of it */
    size_t total;               /* of all tensors so far */
    bool any;                   /* there were bins: a checksum ends the record */
    void *sum;                  /* XXH3 state, created with the first body */
};

/* Begins a record; its previous contents are released. */
void decoder_start(struct decoder *decoder, struct record *record);

/* Says where the next bytes go, and how many: more than 0 until the record is complete. */
void decoder_want(const struct decoder *decoder, void **out, size_t *n);

/* Consumes n bytes, at most as many as were wanted. ERR_DATA: damaged, or beyond the limits;
 * ERR_OS: no memory; or an error of options.header or options.alloc. After an error the record may
 * only be released. */
int decoder_took(struct decoder *decoder, size_t n, struct error *err);

bool decoder_done(const struct decoder *decoder);

/* Returns whether another record begins here; its first byte is consumed. */
bool decoder_interrupted(const struct decoder *decoder);

/* Begins that record with a decoder that is zeroed or was used for one before. Both records
 * together are limited to what the outer one may take. */
void decoder_nest(struct decoder *inner, const struct decoder *outer, struct record *record);

/* Resumes the outer record after the inner one is complete. */
void decoder_resume(struct decoder *outer, const struct decoder *inner);

/* Returns whether tensor data is wanted: worth a read of its own. */
bool decoder_wants_data(const struct decoder *decoder);

void decoder_release(struct decoder *decoder); /* not the record */

#endif
