/* SPDX-License-Identifier: Apache-2.0
 *
 * What is fed under one name, collected field by field from text: what a field is read as, what is
 * missing, and which ids categories have.
 */
#ifndef TF_DATA_FIELDS_H
#define TF_DATA_FIELDS_H

#include "data/cells.h"
#include "data/column.h"

struct column_fields {
    struct data_column column;
    const char *missing; /* stands for fields that say nothing, or FIELD_MEAN; NULL: an error */
    int64_t width;       /* fields of a row; 0: fields_start was not called yet */
    struct cells cells;  /* as they are read */
    bool are_floats;     /* float32 or float64, read as numbers */
    struct data_gaps gaps;
};

/* As `missing`: the mean of the column, which must be standardized: such a field becomes 0. */
#define FIELD_MEAN "mean"

/* The column is copied, what it points to is borrowed; its type is set. */
void fields_init(struct column_fields *fields, const struct data_column *column,
                 const char *missing);
void fields_release(struct column_fields *fields);

/* Starts before the first field, when the number of fields of a row is known. ERR_DATA if another
 * number was fitted to, or other categories. */
int fields_start(struct column_fields *fields, int64_t width, struct error *err);

/* The next field, which is field k of a row. ERR_DATA; the error's text is the cause alone. */
int fields_add(struct column_fields *fields, int64_t k, const char *text, size_t n,
               struct error *err);

/* Takes all that was added, in rows of `shape`, as data_column_apply made it; they are gone
 * then. */
int fields_take(struct column_fields *fields, const struct shape *shape, struct tensor *tensor,
                struct error *err);

#endif
