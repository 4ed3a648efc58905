/* SPDX-License-Identifier: Apache-2.0
 *
 * Records to bytes, in pieces that are written as they lie: the header from the encoder's memory,
 * data from the tensors'.
 *
 *   packer = encoder_begin(e, kind, n_fields);    the caller packs n_fields pairs
 *   encoder_finish(e, tensors, n_tensors, err);   e->header is complete
 *   encoder_bodies(&bodies, tensors, n_tensors, sums);
 *   while (encoder_next(&bodies, limit, &piece)) write piece.bytes
 */
#ifndef TF_WIRE_ENCODER_H
#define TF_WIRE_ENCODER_H

#include "wire/record.h"

struct encoder { /* zero-initialised; encoder_release */
    struct str header;
    enum record_kind kind;
    int n_fields;
    size_t bin_bytes; /* of the largest bin, to be set before the first record; 0: LIMIT_BIN_BYTES
                       */
    msgpack_packer packer;
};

msgpack_packer *encoder_begin(struct encoder *encoder, enum record_kind kind, int n_fields);

/* Completes the header. Tensors are in host memory, row-major. ERR_DATA: a name that is not fit to
 * print, a type that is not carried, a header beyond the limit. */
int encoder_finish(struct encoder *encoder, const struct named_tensor *tensors, int n_tensors,
                   struct error *err);
void encoder_release(struct encoder *encoder);

/* Bytes of the bins and the checksum behind the header; bin_bytes as of the encoder. */
uint64_t encoder_body_bytes(const struct named_tensor *tensors, int n_tensors, size_t bin_bytes);

/* The bytes behind the header, piece by piece. Borrows the tensors. */
struct encoder_bodies {
    size_t bin_bytes; /* as of the encoder; set before encoder_bodies */
    const struct named_tensor *tensors;
    int n_tensors, i;          /* the tensor that is being taken apart */
    size_t bytes, first;       /* of it: all, and those of its first part */
    size_t done, bin_end;      /* of its bytes */
    bool sums, any, empty_bin; /* empty_bin: a string tensor without text has one */
    void *sum;
};

struct encoder_piece {
    const void *bytes; /* of a tensor; NULL: `tag` */
    size_t n;
    uint8_t tag[9];
};

void encoder_bodies(struct encoder_bodies *bodies, const struct named_tensor *tensors,
                    int n_tensors, bool sums);

/* The next piece, of at most `limit` bytes; its checksum was taken, so it should be written soon.
 * False at the end. */
bool encoder_next(struct encoder_bodies *bodies, size_t limit, struct encoder_piece *piece);

/* Returns whether the next piece begins a bin: on links other records may come before it. */
bool encoder_at_bin(const struct encoder_bodies *bodies);
void encoder_bodies_release(struct encoder_bodies *bodies);

#endif
