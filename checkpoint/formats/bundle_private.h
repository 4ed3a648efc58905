/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by reading and writing bundles: checksums, variable-length numbers, the table's constants.
 *
 * The table is LevelDB's: blocks, each followed by a type (0: not compressed, 1: by Snappy) and the
 * masked CRC-32C of both; an index block of the last key of each block and where it lies; a footer
 * of two such handles, padded to 40 bytes, and a magic number. In a block, a key is stored as the
 * length of the prefix it shares with the key before, and the rest. After the entries come the
 * offsets of the keys that are stored whole, and their number.
 */
#ifndef TF_CHECKPOINT_BUNDLE_PRIVATE_H
#define TF_CHECKPOINT_BUNDLE_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUNDLE_MAGIC 0xdb4775248b80fb57
#define BUNDLE_FOOTER_BYTES 48
#define BUNDLE_TRAILER_BYTES 5 /* after a block: type and checksum */

/* Continues the checksum `crc`, which is 0 at first. */
uint32_t bundle_crc(uint32_t crc, const void *data, size_t n);
/* The stored form: a CRC over bytes that contain their own CRC is a weak checksum. */
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

struct wire_bytes { /* what is left to read; `bad`: it ended too early */
    const uint8_t *p, *end;
    bool bad;
};

/* Read a number of variable length, and the next n bytes. */
uint64_t wire_varint(struct wire_bytes *in);
struct wire_bytes wire_take(struct wire_bytes *in, uint64_t n);

/* ---- compressed blocks (bundle_snappy.c) ---- */

#define BLOCK_SNAPPY 1      /* a block's type */
#define SNAPPY_RATIO_MAX 64 /* the most bytes that one packed byte can stand for */

/* Reads the unpacked length; false if a block of this size cannot unpack to so much. */
bool snappy_length(struct wire_bytes packed, uint64_t *n);
/* Unpacks into exactly n bytes; false if the block is damaged. */
bool snappy_unpack(struct wire_bytes packed, uint8_t *bytes, uint64_t n);

#endif
