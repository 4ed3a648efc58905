/* SPDX-License-Identifier: Apache-2.0
 *
 * A record's header: parsing its bytes into kind and map.
 */
#ifndef TF_WIRE_HEADER_H
#define TF_WIRE_HEADER_H

#include "wire/record.h"

#define HEADER_PREFIX_BYTES 5
#define RECORD_TAG 0xce /* its first byte */

/* Returns the length of the header by its prefix, or -1: not a prefix. */
int64_t header_length(const uint8_t prefix[HEADER_PREFIX_BYTES]);

/* Allocates a header of n bytes at record->bytes. */
int header_reserve(struct record *record, size_t n, struct error *err);

/* Checks and unpacks the n bytes at record->bytes: checksum, validator, msgpack, kind. */
int header_parse(struct record *record, size_t n, struct error *err);

#endif
