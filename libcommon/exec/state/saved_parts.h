/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables out of what was saved, however they were cut into slices then and are now: the one way
 * from slices to slices, whether a store, a file or a stream has them.
 */
#ifndef TF_EXEC_SAVED_PARTS_H
#define TF_EXEC_SAVED_PARTS_H

#include "base/name_index.h"
#include "exec/state/variable.h"

struct saved_part { /* a variable, or a slice of one; all of it is whoever's it is taken from */
    const char *container, *name;
    enum dtype type;
    const struct shape *shape;
    const struct variable_slice *slice;
    uint64_t updates;
};

/* Lies in a struct of who has them. */
struct saved_parts {
    const char *from; /* "x.ckpt", for messages */
    size_t n;
    struct saved_part (*at)(const struct saved_parts *parts, size_t i);
    /* The value of part i, which the caller releases. Its errors name where it was. */
    int (*read)(const struct saved_parts *parts, size_t i, struct tensor *value, struct error *err);
    const struct name_index *index; /* NULL: each question goes through all parts */
};

/* Makes an index of the parts, by their names and those of their wholes. */
void saved_parts_index(const struct saved_parts *parts, struct name_index *index);

/* Returns whether they have all elements of such a variable, under its name or in slices of the
 * same whole. Dimensions that `like` leaves open are as they were saved. ERR_DATA naming the
 * variable when what is there does not fit, or has gaps; ERR_NOINPUT when nothing is there. */
int saved_parts_have(const struct saved_parts *parts, const struct variable *like,
                     struct error *err);

/* Errors as of that and of reading, and ERR_DATA when slices overlap and have different bits there.
 * The caller releases the value. *updates: the most that a slice has. */
int saved_parts_read(const struct saved_parts *parts, const struct variable *like,
                     struct tensor *value, uint64_t *updates, struct error *err);

#endif
