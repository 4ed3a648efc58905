/* SPDX-License-Identifier: Apache-2.0
 *
 * What a record says of the whole that a tensor is a part of: nothing, or slice_of, slice_rows and
 * slice_first; and, of a box, slice_sizes and slice_firsts of the axes behind the first.
 */
#ifndef TF_WIRE_SLICE_H
#define TF_WIRE_SLICE_H

#include "base/arena.h"
#include "tensor/slice.h"
#include "wire/record.h"

uint32_t slice_fields(const struct variable_slice *slice); /* that are packed */
void pack_slice(msgpack_packer *packer, const struct variable_slice *slice);

/* Reads the slice of a tensor of that shape; texts go to the arena. False: a part that the whole
 * cannot have, or a whole that no tensor can be. */
bool record_get_slice(const msgpack_object *map, struct arena *arena, const struct shape *shape,
                      struct variable_slice *slice);

#endif
