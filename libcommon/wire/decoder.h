/* SPDX-License-Identifier: Apache-2.0
 *
 * Records from bytes that come in pieces. The decoder says where the next bytes are to go
 * (decoder_want: its own few bytes, the header's memory, a tensor's memory), the caller puts some
 * there, however they reach it, and says how many (decoder_took). So nothing is copied twice, and
 * no memory is taken before what asks for it was checked.
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
 * On links other records may come whole between the bins of one (options.nests). Where one begins
 * the decoder is interrupted, and wants nothing, until another has read that:
 *
 *   if (decoder_interrupted(d)) {
 *       decoder_nest(inner, d, record) ... until decoder_done(inner)
 *       decoder_resume(d, inner);
 *   }
 */
#ifndef TF_WIRE_DECODER_H
#define TF_WIRE_DECODER_H

#include "wire/record.h"

/* The limits and calls that a user of the decoder may set. All of it may be zero. */
struct decoder_options {
    size_t header_bytes; /* largest header; 0: LIMIT_HEADER_BYTES */
    size_t tensor_bytes; /* of a record's tensors together; 0: LIMIT_TENSOR_BYTES each */
    bool nests;          /* other records may come between the bins of one */
    void *context;       /* of the functions */
    /* False when it is certain that not so many bytes will come: before memory is taken for them.
     */
    bool (*may_have)(void *context, size_t bytes);
    /* Called with the header, before there are tensors: whether a record of that kind may come
     * here. */
    int (*header)(void *context, const struct record *record, struct error *err);
    /* Memory for a tensor's data; NULL: the tensor's own. `bytes` is what its data has. */
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

struct decoder { /* the members are the decoder's own, but for `options`, `offset` and `sums` */
    struct decoder_options options;
    bool sums;       /* the bodies' checksums are there, and checked */
    uint64_t offset; /* bytes taken so far, of all records */
    struct record *record;
    enum decoder_stage stage;
    uint8_t small[9];
    uint8_t *out;               /* where the stage's bytes go */
    size_t need, done;          /* of this stage */
    const msgpack_object *list; /* of the tensors in the header */
    int64_t n_bins, bin;        /* of the tensor that is being read, the last in the record */
    size_t bytes, got;          /* of it */
    size_t total;               /* of all tensors so far */
    bool any;                   /* bins came: a checksum ends the record */
    void *sum;                  /* XXH3 state, made with the first body */
};

/* Begins a record: what it held before is released. */
void decoder_start(struct decoder *decoder, struct record *record);

/* Says where the next bytes go, and how many are wanted: more than 0 until the record is there. */
void decoder_want(const struct decoder *decoder, void **out, size_t *n);

/* n bytes (at most as many as were wanted) are there. ERR_DATA: damaged, or beyond the limits;
 * ERR_OS: no memory; or what options.header or options.alloc fail with. After an error the record
 * may only be released. */
int decoder_took(struct decoder *decoder, size_t n, struct error *err);

bool decoder_done(const struct decoder *decoder);

/* Returns whether another record begins here, of which the first byte is taken. */
bool decoder_interrupted(const struct decoder *decoder);

/* Begins that record with a zeroed decoder, or one that has done so before: what both records may
 * take together is what the outer one might. */
void decoder_nest(struct decoder *inner, const struct decoder *outer, struct record *record);

/* It is there: the outer one goes on. */
void decoder_resume(struct decoder *outer, const struct decoder *inner);

/* Returns whether bytes of a tensor are wanted: worth a read of its own. */
bool decoder_wants_data(const struct decoder *decoder);

void decoder_release(struct decoder *decoder); /* not the record */

#endif
