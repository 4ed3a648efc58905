/* SPDX-License-Identifier: Apache-2.0
 *
 * The extents of a large address space that are in use, or have memory kept for the next use; the
 * rest has no memory. A new use takes as much kept memory as it can, from adjacent extents with
 * fresh memory beside them: a large value can use what smaller ones left. Not thread-safe.
 */
#ifndef TF_TRANSPORT_EXTENTS_H
#define TF_TRANSPORT_EXTENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/vec.h"

#define EXTENT_KEPT (-1)

struct memory_extent {
    size_t offset, bytes;
    int user;    /* the caller's number, or, set when it is no longer used, EXTENT_KEPT */
    double used; /* time of the last use */
};

struct extents {
    VEC(struct memory_extent) all; /* by offset */
};

/* Finds the offset in [from, to) where the bytes need the least fresh memory; false: none fits. */
bool extents_find(const struct extents *extents, size_t from, size_t to, size_t bytes,
                  size_t *offset, size_t *fresh);

/* The bytes are used from now on. */
void extents_use(struct extents *extents, size_t offset, size_t bytes, int user, double now);

/* Removes extent i, whose memory is gone. */
void extents_forget(struct extents *extents, size_t i);

size_t extents_bytes(const struct extents *extents);

#endif
