/* SPDX-License-Identifier: Apache-2.0
 *
 * Description of a column to feed: NAME=WHERE[:PART]..., as in `x=1-64:float32:scale=0.0625`. WHERE
 * names columns of a table, or a file. The table of docs/data.md, "Columns", says what each PART
 * is, and in which order they are done.
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
    enum dtype type;   /* DTYPE_INVALID: data_column_type decides */
    enum data_reading reading;
    bool amount;            /* of READ_NUMBER: "$1,234.50" is one */
    const char *categories; /* "a,b"; NULL: those found in the rows */
    bool balance;           /* feeds the weight of a category, not its id */
    int64_t buckets;        /* of hashes */
    enum date_part date_part;
    const char *impute; /* NULL: missing values are an error, or up to the reader */
    bool log1p;
    enum data_norm norm;
    double scale, offset;
    int64_t onehot;     /* width of a one-hot; 0: no, ... */
    bool onehot_of_ids; /* ... or the number of categories or buckets */
    bool flag;
    bool refuses_unseen; /* an unknown category is an error; else it gets an id of its own after the
                          * last, which is all zeros in a one-hot */
    struct fit *fitted;  /* set by data_columns_bind, for columns that are fitted */
    bool is_known;       /* fitted before; if not, these rows are fitted */
    struct shape shape;  /* of one row; unknown rank: the source's */
};

/* Parses a description; with `where_is_path` WHERE may contain colons. Texts are copied into the
 * arena. ERR_USAGE. */
int data_column_parse(struct data_column *column, const char *text, bool where_is_path,
                      struct arena *arena, struct error *err);

/* Parses several, whose names must differ. `columns` has room for n. */
int data_columns_parse(struct data_column *columns, const char *const *texts, int n,
                       bool where_is_path, struct arena *arena, struct error *err);

/* Returns the type fed for source numbers of type `source`. */
enum dtype data_column_type(const struct data_column *column, enum dtype source);

/* Returns whether values are changed by more than a cast. */
bool data_column_computes(const struct data_column *column);

/* Returns whether something is fitted to the rows, which --fit saves. */
bool data_column_fits(const struct data_column *column);

/* Returns whether the substitute for missing values is fitted to the rows. */
bool data_column_imputes(const struct data_column *column);

/* Returns whether missing values may be fed; NaN then counts as missing. */
bool data_column_takes_gaps(const struct data_column *column);

/* Binds columns that are fitted to their fits in `prep`, if known there, or else to new ones to be
 * filled. ERR_DATA if nothing, or something else, was fitted to a name. */
int data_columns_bind(struct data_column *columns, int n, struct prep *prep, bool is_known,
                      struct error *err);

/* Missing elements of a column, in ascending order; fitting ignores them. */
struct data_gaps {
    VEC(int64_t) at;
    bool are_means; /* they count as the column's mean; the values read there are ignored */
};

/* Converts rows as read, [rows, ...], to what is fed. `raw` is always released; `gaps` may be NULL.
 * ERR_DATA: a value outside the type or the one-hot, or a shape that does not fit. */
int data_column_apply(const struct data_column *column, struct tensor *raw,
                      const struct data_gaps *gaps, struct tensor *fed, struct error *err);

#endif
