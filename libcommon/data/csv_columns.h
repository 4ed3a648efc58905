/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields of CSV rows collected into tensors. Which field goes where is decided at the first row,
 * which may be a header.
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
    const char *join;              /* a source whose columns stand behind these; NULL: none */
    char separator, comment;       /* as csv_reader_new's */
    enum csv_header_choice header; /* AUTO: the first row is one if a column is asked for by name,
                                    * or if csv_row_is_header */
    const char *missing;           /* as that of fields.h */
    struct row_choice rows;        /* headers and comments are not counted */
    struct prep *prep;             /* what the columns are standardized by, knows their names */
    struct prep *fit;              /* gets their names */
    /* Called with a line for the user, in the thread that reads; may be NULL. */
    void (*say)(void *context, const char *line);
    void *say_context;
};

struct csv_columns;

/* Opens `path`, as row_source.h has it. Columns and format are copied, what they point to is
 * borrowed. */
int csv_columns_open(const char *path, const struct data_column *columns, int n_columns,
                     const struct csv_format *format, struct csv_columns **result,
                     struct error *err);
void csv_columns_free(struct csv_columns *columns);

/* The source of its rows, to set what happens before they are waited for. */
struct row_source *csv_columns_source(struct csv_columns *columns);

/* Collects one more of the selected rows; *more is false when there is none. With `n_shards`
 * shards, only rows whose number among the selected leaves the remainder `shard` count. ERR_DATA
 * with file, line and column. */
int csv_columns_read(struct csv_columns *columns, int64_t shard, int64_t n_shards, bool *more,
                     struct error *err);

int64_t csv_columns_rows(const struct csv_columns *columns); /* collected */
int64_t csv_columns_last(const struct csv_columns *columns); /* row that was looked at */

/* Hands over what was collected, as data_column_apply made it, and starts anew. `tensors` has a
 * place per column. */
int csv_columns_take(struct csv_columns *columns, struct named_tensor *tensors, struct error *err);

#endif
