/* SPDX-License-Identifier: Apache-2.0
 *
 * Data in memory: named tensors with the same number of rows.
 */
#ifndef TF_DATA_TABLE_H
#define TF_DATA_TABLE_H

#include "data/csv_columns.h"

struct table {
    char *source; /* the files' names */
    struct named_tensor *columns;
    int n;
    int64_t rows;
    int64_t last_row;     /* the last row of the files that was seen, selected or not */
    struct arena arena;   /* for names that came from a file */
    struct tensor values; /* of rows, by which they are split */
};

void table_release(struct table *table);

/* Reads all remaining rows. */
int table_from_csv(struct csv_columns *from, int n_columns, struct table *table, struct error *err);

enum table_format { TABLE_IDX, TABLE_NPY };

/* Reads one file per column. */
int table_from_files(enum table_format format, const struct data_column *columns, int n_columns,
                     const struct row_choice *rows, struct table *table, struct error *err);

/* Reads arrays of an .npz; without columns all arrays, under their own names. */
int table_from_npz(const char *path, const struct data_column *columns, int n_columns,
                   const struct row_choice *rows, struct table *table, struct error *err);

#endif
