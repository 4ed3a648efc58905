/* SPDX-License-Identifier: Apache-2.0
 *
 * What a user asks to be fed: NAME=WHERE[:PART]..., as in `x=1-64:float32:scale=0.0625`. WHERE is
 * columns of a table or a file. A PART is
 *   a type          of what is fed; text: the bytes as they are
 *   shape=8x8x1     how the elements of a row are arranged
 * or says what a field is read as, instead of a number,
 *   category[=a,b]  the id of a category, of those found in ascending order, or of these
 *   balance         rows / (categories * rows of its category), as scikit-learn balances classes
 *   hash=N          a whole number in [0, N) made from the text
 *   date[=PART]     seconds since 1970 in UTC, or a part of the date (dates.h)
 * or what is done with it, in this order, however the parts are ordered:
 *   impute=HOW      puts mean, median, most (the commonest value), or a value as it would stand in
 *                   the file, in place of what is missing
 *   log1p           log(1 + value)
 *   standardize     mean 0 and deviation 1 over the rows selected, or by what was fitted to others
 *   scale           to [0, 1], likewise
 *   scale=S         value * S + offset
 *   offset=O
 *   onehot=N        a whole number in [0, N) becomes N zeros with a one among them
 *   onehot          so for categories (which it finds if no other part does) and hashes; those of
 *                   several columns stand side by side
 *   flag            behind the values of a row, one for each column: 1 where it was missing, 0
 *                   elsewhere
 */
#ifndef TF_DATA_COLUMN_H
#define TF_DATA_COLUMN_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "data/dates.h"
#include "data/prep.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

enum data_reading { READ_NUMBER, READ_CATEGORY, READ_HASH, READ_DATE };
enum data_norm { NORM_NONE, NORM_STANDARDIZE, NORM_SCALE };

struct data_column {
    const char *name;  /* of the feed */
    const char *where; /* as written */
    enum dtype type;   /* DTYPE_INVALID: data_column_type says what it becomes */
    enum data_reading reading;
    const char *categories; /* "a,b"; NULL: those that are found */
    bool balance;           /* the weight of a category is fed, not its id */
    int64_t buckets;        /* of hashes */
    enum date_part date_part;
    const char *impute; /* NULL: what is missing is an error, or for the reader */
    bool log1p;
    enum data_norm norm;
    double scale, offset;
    int64_t onehot;     /* width of a one-hot; 0: no, ... */
    bool onehot_of_ids; /* ... or the number of categories or buckets */
    bool flag;
    bool refuses_unseen; /* a category that is not known is an error; it is an id of its own, the
                          * one   behind the last, and no one among the zeros of a one-hot */
    struct fit *fitted;  /* set by data_columns_bind, for columns that are fitted */
    bool is_known;       /* whether it was fitted before; the rows are fitted to if not */
    struct shape shape;  /* of one row; unknown rank: as the source has it */
};

/* `where_is_path`: WHERE may hold colons. Texts are copied into the arena. ERR_USAGE. */
int data_column_parse(struct data_column *column, const char *text, bool where_is_path,
                      struct arena *arena, struct error *err);

/* Several, whose names must differ. `columns` has n places. */
int data_columns_parse(struct data_column *columns, const char *const *texts, int n,
                       bool where_is_path, struct arena *arena, struct error *err);

/* Returns the type that is fed for numbers of the type `source`. */
enum dtype data_column_type(const struct data_column *column, enum dtype source);

/* Returns whether values are changed by more than a cast. */
bool data_column_computes(const struct data_column *column);

/* Returns whether something is found in the rows for it, which --fit keeps. */
bool data_column_fits(const struct data_column *column);

/* Returns whether what it puts in place of what is missing is found in the rows. */
bool data_column_imputes(const struct data_column *column);

/* Returns whether what is missing has a place in what is fed, and NaN counts as missing. */
bool data_column_takes_gaps(const struct data_column *column);

/* Columns that need something fitted look it up in `prep`, if it is known there, or else it is to
 * be found and added. ERR_DATA if nothing was fitted to a name, or something else. */
int data_columns_bind(struct data_column *columns, int n, struct prep *prep, bool is_known,
                      struct error *err);

/* Elements of a column, in ascending order, that were missing: they have no part in what is fitted.
 */
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
