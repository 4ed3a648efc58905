/* SPDX-License-Identifier: Apache-2.0
 *
 * Restores variables from saved ones, however they were sliced then and are now: the one conversion
 * between slicings, for parts in a store, a file or a stream.
 */
#ifndef TF_EXEC_SAVED_PARTS_H
#define TF_EXEC_SAVED_PARTS_H

#include "base/name_index.h"
#include "exec/state/variable.h"

struct saved_part { /* a variable, or a slice of one; all members are borrowed */
    const char *container, *name;
    enum dtype type;
    const struct shape *shape;
    const struct variable_slice *slice;
    uint64_t updates;
};

/* Embedded in the source's own struct. */
struct saved_parts {
    const char *from; /* "x.ckpt", for messages */
    size_t n;
    struct saved_part (*at)(const struct saved_parts *parts, size_t i);
    /* Reads the value of part i, which the caller releases. Errors name the place. */
    int (*read)(const struct saved_parts *parts, size_t i, struct tensor *value, struct error *err);
    const struct name_index *index; /* NULL: each search goes through all parts */
};

/* Makes an index of the parts, by their names and those of their wholes. */
void saved_parts_index(const struct saved_parts *parts, struct name_index *index);

/* Reads such a variable, under its name or from slices of the same whole; `value` NULL: only checks
 * that the parts have all of its elements. Dimensions that `like` leaves open are as they were
 * saved. ERR_DATA names the variable if the parts do not fit, have gaps, or overlap and differ
 * there; ERR_NOINPUT: there are none. The caller releases the value. *updates: the largest number
 * of a slice. */
int saved_parts_read(const struct saved_parts *parts, const struct variable *like,
                     struct tensor *value, uint64_t *updates, struct error *err);

#endif
