/* SPDX-License-Identifier: Apache-2.0
 *
 * What a record says of the whole that a tensor is a part of: nothing, or slice_of, slice_rows and
 * slice_first; and, of a box, slice_sizes and slice_firsts of the axes behind the first.
 */
#ifndef TF_CHECKPOINT_MANIFEST_SLICE_H
#define TF_CHECKPOINT_MANIFEST_SLICE_H

#include "base/arena.h"
#include "exec/state/variable.h"
#include "wire/record.h"

uint32_t manifest_slice_fields(const struct variable_slice *slice); /* that are packed */
void manifest_pack_slice(msgpack_packer *packer, const struct variable_slice *slice);

/* Of a tensor of that shape; texts go to the arena. False: a part that the whole cannot have. */
bool manifest_read_slice(const msgpack_object *map, struct arena *arena, const struct shape *shape,
                         struct variable_slice *slice);

#endif
