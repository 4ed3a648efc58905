/* SPDX-License-Identifier: Apache-2.0
 *
 * Collects what is fed under one name, field by field, from text: parses fields, replaces missing
 * ones, and looks up ids of categories.
 */
#ifndef TF_DATA_FIELDS_H
#define TF_DATA_FIELDS_H

#include "data/cells.h"
#include "data/column.h"

struct column_fields {
    struct data_column column;
    const char *missing; /* substitute for missing fields, or FIELD_MEAN; NULL: an error */
    int64_t width;       /* fields per row; 0: before fields_start */
    struct cells cells;  /* as read */
    bool are_floats;     /* float32 or float64, read as numbers */
    struct data_gaps gaps;
};

/* For `missing`: the column's mean; the column must be standardized, so the field becomes 0. */
#define FIELD_MEAN "mean"

/* Copies the column, whose type is set, but borrows what it points to. */
void fields_init(struct column_fields *fields, const struct data_column *column,
                 const char *missing);
void fields_release(struct column_fields *fields);

/* Called before the first field, once the number of fields per row is known. ERR_DATA if it, or the
 * categories, differ from what was fitted. */
int fields_start(struct column_fields *fields, int64_t width, struct error *err);

/* Adds the next field, which is field k of a row. ERR_DATA; the error has only the cause. */
int fields_add(struct column_fields *fields, int64_t k, const char *text, size_t n,
               struct error *err);

/* Takes everything that was added, in rows of `shape`, as data_column_apply makes it; empty
 * afterwards. */
int fields_take(struct column_fields *fields, const struct shape *shape, struct tensor *tensor,
                struct error *err);

#endif
