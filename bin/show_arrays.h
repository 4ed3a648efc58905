/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors as NumPy has them: its files as records, wherever a stream may stand, and tensors of
 * records as a file.
 */
#ifndef TF_BIN_SHOW_ARRAYS_H
#define TF_BIN_SHOW_ARRAYS_H

#include <stdbool.h>
#include <stdio.h>

#include "base/vec.h"
#include "wire/record.h"

struct arrays {
    const char *const *wanted; /* of an archive only these; n_wanted is 0: all */
    int n_wanted;
    bool are_there;      /* the input is a .npy or .npz file, from a pipe or not */
    struct error unread; /* of all: the first that is no tensor or is damaged, which is left out */
};

/* If arrays are there, `record` gets them as the tensors of a tensor record: that of a .npy file
 * without a name. Otherwise nothing was read. */
int arrays_read(struct arrays *arrays, struct stream_reader *reader, struct record *record,
                struct error *err);

/* Tensors of one name, over all records that have it. */
struct array_gather {
    const char *source; /* for messages */
    const char *wanted; /* NULL: the only one that there is */
    struct arena arena;
    VEC(struct tensor) parts;
    VEC(const char *) names; /* of all tensors, each once */
};

/* ERR_DATA when rows do not go together, or tensors that are no rows have the same name. */
int array_gather_add(struct array_gather *gathering, const struct record *record,
                     struct error *err);

/* In NumPy's format: one tensor as it is, those of several feeds or fetches with their rows one
 * behind the other, numbers as a vector. ERR_DATA when there is none, ERR_USAGE when there are
 * several and no name was given. */
int array_gather_write(struct array_gather *gathering, FILE *out, struct error *err);

void array_gather_release(struct array_gather *gathering);

#endif
