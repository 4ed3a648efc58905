/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of text, wherever they come from: CSV or JSON lines, a file, several one behind the other,
 * or two sources side by side. Not thread-safe.
 */
#ifndef TF_DATA_ROW_SOURCE_H
#define TF_DATA_ROW_SOURCE_H

#include "wire/csv.h"

enum row_format { ROWS_CSV, ROWS_JSONL };

struct row_source;

/* `path` is "-" for stdin, a file, or, where there is no such file, a list of files and patterns
 * between commas: "jan.csv,feb*.csv". A pattern's files are in the order of their names.
 * `separator` and `comment` are csv_reader_new's. JSON lines begin with the names of their columns.
 * ERR_NOINPUT for a file that is missing, or a pattern that has none. */
int row_source_open(const char *path, enum row_format format, char separator, char comment,
                    struct row_source **source, struct error *err);
/* Joins each row of `left` with the same row of `right`, whose fields come behind; takes both. */
struct row_source *row_source_join(struct row_source *left, struct row_source *right);
void row_source_free(struct row_source *source); /* NULL is harmless */

/* The next row, valid until the next call; *more is false at the end. ERR_DATA, also where one of
 * two joined ones has fewer rows. */
int row_source_read(struct row_source *source, struct csv_row *row, bool *more, struct error *err);

/* The row that was read last names the columns. So does then the first one of each further file,
 * which is passed over; reading is ERR_DATA if its names are others. */
void row_source_set_header(struct row_source *source);

/* The name of all, "stdin" for "-", and that of the file that is read. Borrowed. */
const char *row_source_name(const struct row_source *source);
const char *row_source_file(const struct row_source *source);

/* Waits as the function of gzfile.h does. */
void row_source_on_wait(struct row_source *source, int (*wait)(void *context, struct error *err),
                        void *context);
void row_source_stop_on(struct row_source *source, int fd);

#endif
