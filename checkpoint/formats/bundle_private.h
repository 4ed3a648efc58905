/* SPDX-License-Identifier: Apache-2.0
 *
 * What reading and writing bundles share: checksums, variable-length numbers, the table's numbers.
 *
 * The table is LevelDB's: blocks, each followed by a type (0: not compressed, 1: by Snappy) and the
 * masked CRC-32C of both; an index block of the last key of each block and where it lies; a footer
 * of two such handles, padded to 40 bytes, and a magic number. In a block a key is told by how much
 * of the one before it shares; offsets of keys that are told whole follow the entries, and their
 * number.
 */
#ifndef TF_CHECKPOINT_BUNDLE_PRIVATE_H
#define TF_CHECKPOINT_BUNDLE_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "tensor/tensor.h"

#define BUNDLE_MAGIC 0xdb4775248b80fb57
#define BUNDLE_FOOTER_BYTES 48
#define BUNDLE_TRAILER_BYTES 5 /* of a block: type and sum */

/* Goes on from `crc`, 0 at first. */
uint32_t bundle_crc(uint32_t crc, const void *data, size_t n);
/* As it is stored: a sum over bytes that hold their own sum is a bad one. */
uint32_t bundle_crc_mask(uint32_t crc);

/* Fields of the protocol buffers that the table holds. */
enum {
    HEADER_SHARDS = 1,
    HEADER_ENDIANNESS = 2,
    HEADER_VERSION = 3,
    ENTRY_TYPE = 1,
    ENTRY_SHAPE = 2,
    ENTRY_SHARD = 3,
    ENTRY_OFFSET = 4,
    ENTRY_SIZE = 5,
    ENTRY_CRC = 6,
    ENTRY_SLICES = 7,
    SHAPE_DIM = 2,
    DIM_SIZE = 1,
    SLICE_EXTENT = 1,
    EXTENT_START = 1,
    EXTENT_LENGTH = 2,
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2,
    WIRE_FIXED32 = 5,
};

struct wire_bytes { /* what is left to read; `bad` once it ended too early */
    const uint8_t *p, *end;
    bool bad;
};

struct bundle_entry { /* BundleEntryProto */
    uint64_t type, shard, offset, size;
    struct shape shape;
    uint32_t crc;
    bool has_slices;
    struct wire_bytes message; /* where it was parsed from */
};

uint64_t wire_varint(struct wire_bytes *in);
struct wire_bytes wire_take(struct wire_bytes *in, uint64_t n);
uint32_t wire_fixed32(struct wire_bytes *in);

/* The next field of a message: its number, and its value as a number or as bytes. */
uint64_t wire_field(struct wire_bytes *in, uint64_t *number, struct wire_bytes *bytes);

/* False when it is none. */
bool bundle_parse_entry(struct wire_bytes in, struct bundle_entry *entry);

/* ---- compressed blocks (bundle_snappy.c) ---- */

#define BLOCK_SNAPPY 1      /* a block's type */
#define SNAPPY_RATIO_MAX 64 /* no byte of a packed block stands for more */

/* Reads how long the block is unpacked; false if no block of so few bytes can be. */
bool snappy_length(struct wire_bytes packed, uint64_t *n);
/* Unpacks into exactly n bytes; false if the block is damaged. */
bool snappy_unpack(struct wire_bytes packed, uint8_t *bytes, uint64_t n);

/* ---- slices (bundle_slices.c) ----
 *
 * A variable that was partitioned has an entry with its whole shape and the extents of its slices,
 * and no data. Each slice has an entry of its own, whose key is a number 0, the name, and the
 * extents, in LevelDB's ordered code. */

struct bundle;

struct bundle_slice { /* an entry that is one, under its key */
    struct str key;
    struct bundle_entry entry;
    bool used;
};

struct bundle_slices {
    VEC(struct bundle_slice) items;
    bool sorted;
};

/* Returns whether the key is a slice's: no name begins with a zero. */
bool bundle_key_is_slice(const struct str *key);
void bundle_slices_add(struct bundle_slices *slices, const struct str *key,
                       const struct bundle_entry *entry);
/* Reads the tensor of an entry that has slices: each element is in exactly one of them, or it is
 * ERR_DATA. */
int bundle_slices_join(struct bundle *bundle, struct bundle_slices *slices, const char *name,
                       const struct bundle_entry *whole, struct tensor *value, struct error *err);
/* ERR_DATA: one was of no tensor. */
int bundle_slices_check(const struct bundle_slices *slices, struct error *err);
void bundle_slices_release(struct bundle_slices *slices);

/* The tensor of an entry of numbers that has no slices, from whichever file holds it. */
int bundle_read_numbers(struct bundle *bundle, const struct bundle_entry *entry,
                        struct tensor *value, struct error *err);
/* Returns whether its data is there at all, before memory is taken. */
int bundle_find_data(struct bundle *bundle, const struct bundle_entry *entry, struct error *err);

#endif
