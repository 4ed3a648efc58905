/* SPDX-License-Identifier: Apache-2.0
 *
 * NumPy's files: reads them as records, wherever a stream may be given, and writes tensors of
 * records as such a file.
 */
#ifndef TF_BIN_SHOW_ARRAYS_H
#define TF_BIN_SHOW_ARRAYS_H

#include <stdbool.h>
#include <stdio.h>

#include "base/vec.h"
#include "wire/record.h"

struct tensor_source {
    struct stream_reader *reader;
    const char *const *wanted; /* arrays to read of an archive; n_wanted 0: all */
    int n_wanted;
    bool is_begun;            /* set by the caller: the input is a stream, whatever its beginning */
    bool are_arrays, is_read; /* it is a .npy or .npz file, from a pipe or not; and was read */
    struct error unread; /* if all are read: of the first that was left out, as it is no tensor */
};

/* Waits for the input's first bytes, and reads it if it has arrays. */
int tensor_source_begin(struct tensor_source *source, struct record *record, struct error *err);

/* Reads the next record; *more is false at the end. Arrays of a file are the tensors of one tensor
 * record; that of a .npy file has no name. */
int tensor_source_read(struct tensor_source *source, struct record *record, bool *more,
                       struct error *err);

/* Collects tensors of one name, over all records that have it. */
struct array_gather {
    const char *source; /* for messages */
    const char *wanted; /* NULL: the only name that there is */
    struct arena arena;
    VEC(struct tensor) parts;
    VEC(const char *) names; /* of all tensors, each once */
};

/* Adds a record. ERR_DATA if rows differ in type or shape, or tensors without rows share a name. */
int array_gather_add(struct array_gather *gathering, const struct record *record,
                     struct error *err);

/* Writes NumPy's format: a single tensor unchanged; those of several feeds or fetches concatenated
 * by rows, scalars as a vector. ERR_DATA if there is none, ERR_USAGE if there are several names and
 * none was given. */
int array_gather_write(struct array_gather *gathering, FILE *out, struct error *err);

void array_gather_release(struct array_gather *gathering);

#endif
