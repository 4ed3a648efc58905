/* SPDX-License-Identifier: Apache-2.0
 *
 * Collects fields of CSV rows into tensors. The first row, which may be a header, determines which
 * field goes where.
 */
#ifndef TF_DATA_CSV_COLUMNS_H
#define TF_DATA_CSV_COLUMNS_H

#include <stdbool.h>

#include "data/fields.h"
#include "data/row_source.h"
#include "data/split.h"
#include "wire/record.h"

enum csv_header_choice { CSV_HEADER_AUTO, CSV_HEADER_YES, CSV_HEADER_NO };

struct csv_format {
    enum row_format rows_of;
    const char *join;              /* a source whose columns are appended to these; NULL: none */
    char separator, comment;       /* as csv_reader_new's */
    enum csv_header_choice header; /* AUTO: the first row is one if a column is requested by name,
                                    * or if csv_row_is_header */
    const char *missing;           /* as in fields.h */
    struct row_choice rows;        /* headers and comments do not count */
    struct prep *prep;             /* what was fitted before; knows the columns' names */
    struct prep *fit;              /* receives the columns' names */
    /* Receives lines for the user, in the reading thread; may be NULL. */
    void (*say)(void *context, const char *line);
    void *say_context;
};

struct csv_columns;

/* Opens `path`, as row_source.h describes it. Copies columns and format, but borrows what they
 * point to. */
int csv_columns_open(const char *path, const struct data_column *columns, int n_columns,
                     const struct csv_format *format, struct csv_columns **result,
                     struct error *err);
void csv_columns_free(struct csv_columns *columns);

/* Returns the source of the rows, for setting its wait function. */
struct row_source *csv_columns_source(struct csv_columns *columns);

/* Collects one more selected row; *more is false if there is none. With `n_shards` shards, only
 * rows count whose number among the selected ones, modulo n_shards, is `shard`. ERR_DATA with file,
 * line and column. */
int csv_columns_read(struct csv_columns *columns, int64_t shard, int64_t n_shards, bool *more,
                     struct error *err);

int64_t csv_columns_rows(const struct csv_columns *columns); /* collected */
int64_t csv_columns_last(const struct csv_columns *columns); /* the last row that was seen */

/* Hands over what was collected, as data_column_apply makes it, and starts anew. `tensors` has room
 * for one per column. */
int csv_columns_take(struct csv_columns *columns, struct named_tensor *tensors, struct error *err);

#endif
