/* SPDX-License-Identifier: Apache-2.0
 *
 * A record's header: parsing its bytes into kind and map. They are validated before they become
 * objects, as a container's count may claim anything. msgpack-c's own unpacker takes half of the
 * time of a small record, most of it for memory; here one block holds all objects, and the next
 * record reuses it.
 */
#ifndef TF_WIRE_HEADER_H
#define TF_WIRE_HEADER_H

#include "wire/record.h"

#define HEADER_PREFIX_BYTES 5
#define RECORD_TAG 0xce /* its first byte */

/* Allocates a header of n bytes at record->bytes. */
int header_reserve(struct record *record, size_t n, struct error *err);

/* Checks and unpacks the n bytes at record->bytes: checksum, validator, msgpack, kind. */
int header_parse(struct record *record, size_t n, struct error *err);

/* Checks that [data, data + n) is exactly one msgpack map within the limits of limits.h, in which
 * no container claims more elements than there are bytes left, and counts the objects, including
 * the map itself. ERR_DATA if not. */
int header_measure(const uint8_t *data, size_t n, size_t *n_objects, struct error *err);

/* Unpacks the map at `data`, which header_measure has found to contain n_objects objects.
 * `objects` has room for n_objects; the root is the first. Texts and binaries point into the
 * data. */
void header_unpack(const uint8_t *data, msgpack_object *objects);

#endif
