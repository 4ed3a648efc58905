/* SPDX-License-Identifier: Apache-2.0
 *
 * Which parts of a large address space are in use, and which have memory that is kept for the next
 * use; where there is no extent there is no memory. A new use takes kept memory as far as it can:
 * parts of several extents that lie side by side, with fresh memory beside them, so that a large
 * value takes what smaller ones have left. Not thread-safe.
 */
#ifndef TF_TRANSPORT_EXTENTS_H
#define TF_TRANSPORT_EXTENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/vec.h"

#define EXTENT_KEPT (-1)

struct memory_extent {
    size_t offset, bytes;
    int user;    /* as the caller numbers them; EXTENT_KEPT: nobody */
    double used; /* when it was last */
};

struct extents {
    VEC(struct memory_extent) all; /* by offset */
};

/* Finds where so many bytes within [from, to) need the least fresh memory; false: nowhere. */
bool extents_find(const struct extents *extents, size_t from, size_t to, size_t bytes,
                  size_t *offset, size_t *fresh);

/* They are used from now on. */
void extents_use(struct extents *extents, size_t offset, size_t bytes, int user, double now);

/* Nobody uses extent i any more; its memory is kept. */
void extents_keep(struct extents *extents, size_t i);

/* Its memory is gone. */
void extents_forget(struct extents *extents, size_t i);

size_t extents_bytes(const struct extents *extents);
void extents_release(struct extents *extents);

#endif
