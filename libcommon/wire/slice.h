/* SPDX-License-Identifier: Apache-2.0
 *
 * How a record describes the whole that a tensor is a slice of: no field, or slice_of, slice_rows
 * and slice_first; and, for a box, slice_sizes and slice_firsts of the axes after the first.
 */
#ifndef TF_WIRE_SLICE_H
#define TF_WIRE_SLICE_H

#include "base/arena.h"
#include "tensor/slice.h"
#include "wire/record.h"

uint32_t slice_fields(const struct variable_slice *slice); /* how many are packed */
void pack_slice(msgpack_packer *packer, const struct variable_slice *slice);

/* Reads the slice of a tensor of that shape; texts go to the arena. Returns false for a part that
 * does not fit the whole, or a whole that exceeds any tensor. */
bool record_get_slice(const msgpack_object *map, struct arena *arena, const struct shape *shape,
                      struct variable_slice *slice);

#endif
