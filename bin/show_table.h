/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints tensors of records as a table of text: a row of each tensor is a row of the table, under
 * the tensor's name, or NAME[0], NAME[1] and so on if the row has several elements. If all are
 * scalars, a record is a row, which begins with its step. Fitted figures (data/prep.h) turn ids
 * back into categories, and standardized or scaled values into those of the file.
 */
#ifndef TF_BIN_SHOW_TABLE_H
#define TF_BIN_SHOW_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "data/prep.h"
#include "data/row_source.h"
#include "wire/record.h"

/* One of the tensors. */
struct table_tensor {
    const char *name;
    const struct fit *fitted; /* the transform to invert; NULL: none */
    int64_t width;            /* elements of a row */
    bool is_scalar;
};

/* A column: one element of each row of a tensor. */
struct table_column {
    const char *label;
    int tensor;    /* index; -1: the step; -2: the category of a matrix's row */
    int64_t place; /* of the element in the row */
};

struct show_table {
    FILE *out;
    char separator;
    const char *const *wanted; /* NAME, or NAME=FEED to invert FEED's transform; ... */
    int n_wanted;              /* ... 0: all, each by its own. Kept columns come first */
    struct prep *prep;         /* fitted transforms; NULL: nothing is inverted */
    const char *choice;        /* names and patterns of columns, "id,p*"; NULL: all */
    bool matrix;               /* a tensor's rows are categories, as in a confusion matrix */
    /* Set by the first record. */
    struct arena arena;
    VEC(struct table_tensor) tensors;
    VEC(struct table_column) columns;
    VEC(const struct tensor *) found; /* in the current record */
};

/* Prints a feed, a fetch or the arrays of a file. Skips other records, and those with none of the
 * wanted tensors or, later, of the tensors of the first record. ERR_DATA if a wanted tensor is
 * missing, or tensors differ in their number of rows. */
int show_table_add(struct show_table *table, const struct record *record, struct error *err);
/* ERR_DATA if there was no such record, ERR_IO. */
int show_table_end(struct show_table *table, struct error *err);
void show_table_release(struct show_table *table);

#endif
