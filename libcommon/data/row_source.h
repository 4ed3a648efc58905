/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of text from any source: CSV or JSON lines, a file, several consecutive ones, or two sources
 * side by side. Not thread-safe.
 */
#ifndef TF_DATA_ROW_SOURCE_H
#define TF_DATA_ROW_SOURCE_H

#include "wire/csv.h"

enum row_format { ROWS_CSV, ROWS_JSONL, ROWS_GUESSED };

struct row_source;

/* `path` is "-" for stdin, a file, or, if no such file exists, a comma-separated list of files and
 * patterns: "jan.csv,feb*.csv". Files of a pattern are sorted by name. `separator` and `comment`
 * are as for csv_reader_new. ROWS_GUESSED: JSON lines if the first file begins as an object, else
 * CSV; ERR_DATA for arrays. JSON lines begin with a row of their columns' names: of all objects of
 * files, and of the first one of a pipe. ERR_NOINPUT for a missing file, or a pattern without
 * files.
 */
int row_source_open(const char *path, enum row_format format, char separator, char comment,
                    struct row_source **source, struct error *err);
/* Appends to each row the fields of the same row of `right`, which the source then owns. */
void row_source_join(struct row_source *source, struct row_source *right);
void row_source_free(struct row_source *source); /* NULL is harmless */

/* Before the first row of JSON lines: columns that come first, whether or not an object has them.
 */
void row_source_expect(struct row_source *source, const char *const *names, size_t n);

/* Reads the next row, valid until the next call; *more is false at the end. ERR_DATA, also if one
 * of two joined sources has fewer rows. */
int row_source_read(struct row_source *source, struct csv_row *row, bool *more, struct error *err);

/* Declares that the row read last is the header. The first row of each further file is then skipped
 * as a header, too; reading fails with ERR_DATA if its names differ. */
void row_source_set_header(struct row_source *source);

enum row_format row_source_format(const struct row_source *source); /* not ROWS_GUESSED */
/* The name of the whole source, "stdin" for "-"; that of the file being read. Borrowed. */
const char *row_source_name(const struct row_source *source);
const char *row_source_file(const struct row_source *source);

/* Sets a wait function as gzfile.h does. */
void row_source_on_wait(struct row_source *source, int (*wait)(void *context, struct error *err),
                        void *context);
void row_source_stop_on(struct row_source *source, int fd);

#endif
