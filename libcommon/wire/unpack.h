/* SPDX-License-Identifier: Apache-2.0
 *
 * Unpacks a validated header into msgpack objects. msgpack-c's own unpacker takes half of the time
 * of a small record, most of it for memory; here one block holds all objects, and the next record
 * reuses it.
 */
#ifndef TF_WIRE_UNPACK_H
#define TF_WIRE_UNPACK_H

#include <msgpack.h>
#include <stddef.h>
#include <stdint.h>

/* Unpacks the map at `data`, which header_validate has found complete and to contain n_objects
 * objects, itself included. `objects` has room for n_objects; the root is the first. Texts and
 * binaries point into the data. */
void header_unpack(const uint8_t *data, msgpack_object *objects);

#endif
