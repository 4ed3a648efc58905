/* SPDX-License-Identifier: Apache-2.0
 *
 * Describes the columns of a text table: types, ranges, missing values, the commonest values; and
 * suggests how to feed it. Not thread-safe.
 */
#ifndef TF_DATA_DESCRIBE_H
#define TF_DATA_DESCRIBE_H

#include "base/str.h"
#include "data/csv_columns.h"

#define DESCRIBE_DISTINCT_MAX 100000 /* limit of distinct values per column */

enum column_type {
    COLUMN_EMPTY,
    COLUMN_WHOLE,
    COLUMN_NUMBER,
    COLUMN_AMOUNT,
    COLUMN_BOOL,
    COLUMN_DATE,
    COLUMN_TEXT
};

struct value_count {
    const char *text;
    int64_t rows;
};

struct column_summary {
    const char *name; /* or the position, as text */
    enum column_type type;
    int64_t missing;
    double min, max, mean;            /* of numbers; NaN where there are none */
    struct str first, last;           /* of dates, as they stand there; empty: there are none */
    double first_at, last_at;         /* in seconds */
    VEC(struct value_count) distinct; /* the commonest first, once all is read; no more than ... */
    bool has_more;                    /* ... DESCRIBE_DISTINCT_MAX; there were others */
    int64_t kinds[COLUMN_TEXT + 1];   /* fields that may be of each type */
    struct map places;                /* of the values */
};

struct table_description {
    int64_t rows;
    bool has_header;
    VEC(struct column_summary) columns;
    struct arena arena;
};

const char *column_type_name(enum column_type type);

/* Reads all rows; the source is borrowed. ERR_DATA, also if there are none. */
int describe_rows(struct row_source *source, enum csv_header_choice header,
                  struct table_description *description, struct error *err);
void description_release(struct table_description *description);

/* Appends words NAME=COLUMNS[:PART]...: numbers as x, texts with few values as one-hots, dates in
 * seconds, the last column as y. Columns with another value in each row, such as a row number, are
 * left out. */
void description_suggest(const struct table_description *description, struct str *operands);

#endif
