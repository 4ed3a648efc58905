/* SPDX-License-Identifier: Apache-2.0
 *
 * Encodes records as pieces that are written without copying: the header from the encoder's memory,
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
    size_t bin_bytes; /* of the largest bin, set before the first record; 0: LIMIT_BIN_BYTES */
    msgpack_packer packer;
};

msgpack_packer *encoder_begin(struct encoder *encoder, enum record_kind kind, int n_fields);

/* Completes the header. Tensors are in host memory, row-major. ERR_DATA: an unprintable name, a
 * type that records cannot carry, a header beyond the limit. */
int encoder_finish(struct encoder *encoder, const struct named_tensor *tensors, int n_tensors,
                   struct error *err);
void encoder_release(struct encoder *encoder);

/* Returns the bytes of the bins and the checksum after the header; bin_bytes as in the encoder. */
uint64_t encoder_body_bytes(const struct named_tensor *tensors, int n_tensors, size_t bin_bytes);

/* The bytes after the header, piece by piece. Borrows the tensors. */
struct encoder_bodies {
    size_t bin_bytes; /* as in the encoder; set before encoder_bodies */
    const struct named_tensor *tensors;
    int n_tensors, i;          /* i: the current tensor */
    size_t bytes, first;       /* of the tensor: all, and those of its first part */
    size_t done, bin_end;      /* offsets in it */
    bool sums, any, empty_bin; /* empty_bin: a string tensor without text has one */
    void *sum;
};

struct encoder_piece {
    const void *bytes; /* in a tensor; NULL: `tag` */
    size_t n;
    uint8_t tag[9];
};

void encoder_bodies(struct encoder_bodies *bodies, const struct named_tensor *tensors,
                    int n_tensors, bool sums);

/* Gets the next piece, of at most `limit` bytes; its checksum is already taken, so write it soon.
 * Returns false at the end. */
bool encoder_next(struct encoder_bodies *bodies, size_t limit, struct encoder_piece *piece);

/* Returns whether the next piece begins a bin: on links other records may be inserted before it. */
bool encoder_at_bin(const struct encoder_bodies *bodies);
void encoder_bodies_release(struct encoder_bodies *bodies);

#endif
