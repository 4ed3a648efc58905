/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors of records as a table of text: a row of each tensor is a row of the table, under the
 * tensor's name, or NAME[0], NAME[1] and so on if it has several elements. Scalars alone are a row
 * a record, behind its step. The fitted figures (data/prep.h) turn ids back into categories and
 * standardized or scaled values into those of the file.
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
    const struct fit *fitted; /* what it is turned back by; NULL: nothing */
    int64_t width;            /* elements of a row */
    bool is_scalar;
};

/* One element of the rows of a tensor. */
struct table_column {
    const char *label;
    int tensor;    /* -1: the step; -2: of a matrix, what its row is of */
    int64_t place; /* in the row */
};

struct show_table {
    FILE *out;
    char separator;
    const char *const *wanted; /* NAME, or NAME=FEED: as what was fed under that name; ... */
    int n_wanted;              /* ... 0: all, each as its own. Kept columns are in front */
    struct prep *prep;         /* NULL: nothing is turned back */
    const char *choice;        /* names and patterns of columns, "id,p*"; NULL: all */
    bool matrix;               /* a row of a tensor is a category's, as of a confusion matrix */
    /* Set with the first record. */
    struct arena arena;
    VEC(struct table_tensor) tensors;
    VEC(struct table_column) columns;
    VEC(const struct tensor *) found; /* of the record at hand */
};

/* A feed, a fetch or the arrays of a file; other records, and those that have none of the
 * tensors that are wanted, or that the first one had, are passed over. ERR_DATA if a tensor that
 * is wanted is not there, or tensors have no rows that go together. */
int show_table_add(struct show_table *table, const struct record *record, struct error *err);
/* ERR_DATA if there was no such record, ERR_IO. */
int show_table_end(struct show_table *table, struct error *err);
void show_table_release(struct show_table *table);

#endif
