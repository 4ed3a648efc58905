/* SPDX-License-Identifier: Apache-2.0
 *
 * What was saved of a variable that is wanted: found by saved_parts.c, put together by
 * saved_parts_read.c.
 */
#ifndef TF_EXEC_SAVED_PARTS_PRIVATE_H
#define TF_EXEC_SAVED_PARTS_PRIVATE_H

#include "exec/state/saved_parts.h"

/* A part of a whole: what is wanted, or what was saved. */
struct whole_part {
    const char *of;
    struct shape whole;
    struct box box;
};

struct found_part {
    size_t i;
    struct box box;
};

/* What is wanted, and the parts that have some of it. */
struct part_search {
    const struct saved_parts *parts;
    const struct variable *like;
    const struct name_index *index; /* while it is searched */
    struct whole_part wanted;
    VEC(struct found_part) found;
    bool is_known; /* of its whole anything was saved: */
    struct saved_part first;
    struct shape first_whole;
    bool in_rows;  /* all parts are rows of the whole */
    bool overlaps; /* parts may do so */
};

/* Zeroed but for `parts` and `like`; the caller releases `found`. *same: the part that is all of
 * it; -1: it is made of those that were found. Errors as of saved_parts_have. */
int saved_parts_search(struct part_search *search, int *same, struct error *err);

/* The shape of what is wanted, and a byte for each of its elements: 0, none was there yet. */
struct shape saved_parts_shape(const struct part_search *search);
int saved_parts_map(const struct part_search *search, struct tensor *map, struct error *err);

#endif
