/* SPDX-License-Identifier: Apache-2.0
 *
 * What a user asks to be fed: NAME=WHERE[:PART]..., as in `x=1-64:float32:scale=0.0625`. WHERE is
 * columns of a table or a file; a PART is
 *   a type          of what is fed
 *   scale=S         value * S + offset
 *   offset=O
 *   standardize     mean 0 and deviation 1 over the rows selected, or by what was fitted to
 *                   others, before scale and offset
 *   onehot=N        a whole number in [0, N) becomes N zeros with a one among them
 *   shape=8x8x1     how the elements of a row are arranged
 */
#ifndef TF_DATA_COLUMN_H
#define TF_DATA_COLUMN_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "data/prep.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

struct data_column {
    const char *name;  /* of the feed */
    const char *where; /* as written */
    enum dtype type;   /* DTYPE_INVALID: what the source has, float32 for text and one-hot */
    double scale, offset;
    bool standardize;
    const struct fitted *prep; /* standardizes by this; NULL: by the rows themselves, ... */
    struct fitted *fit;        /* ... and this, if there is one, gets what they have */
    int64_t onehot;            /* 0: no */
    struct shape shape;        /* of one row; unknown rank: as the source has it */
};

/* `where_is_path`: WHERE may hold colons. Texts are copied into the arena. ERR_USAGE. */
int data_column_parse(struct data_column *column, const char *text, bool where_is_path,
                      struct arena *arena, struct error *err);

/* Several, whose names must differ. `columns` has n places. */
int data_columns_parse(struct data_column *columns, const char *const *texts, int n,
                       bool where_is_path, struct arena *arena, struct error *err);

/* Whether values are changed by more than a cast. */
bool data_column_computes(const struct data_column *column);

/* Pointers `prep` and `fit` of columns that standardize: what was fitted is looked up in `prep`, or
 * `fit` is to get what is fitted; either may be NULL. ERR_DATA if nothing was fitted to a name. */
int data_columns_bind(struct data_column *columns, int n, struct prep *prep, struct prep *fit,
                      struct error *err);

/* Elements of a column that is standardized, in ascending order, that were missing: they have no
 * part in mean and deviation. */
struct data_gaps {
    VEC(int64_t) at;
    bool are_means; /* what was read in their places is not: they are the mean */
};

/* Turns rows as they were read, [rows, ...], into what is fed. `raw` is released, also on failure;
 * `gaps` may be NULL. ERR_DATA: a value that the type or the one-hot does not have, a shape that
 * does not fit. */
int data_column_apply(const struct data_column *column, struct tensor *raw,
                      const struct data_gaps *gaps, struct tensor *fed, struct error *err);

#endif
