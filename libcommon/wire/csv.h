/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a table in text, as RFC 4180 has them and as they are found: fields between separators,
 * quoted with "..." where they hold separators, line ends or quotes ("" is a quote; blanks behind
 * the closing one belong to the field), lines ended by LF, CRLF or CR, each as it comes, a byte
 * order mark at the start, comment lines. Blank lines are passed over.
 *
 * A row is handed out as soon as its line end was read. Not thread-safe.
 */
#ifndef TF_WIRE_CSV_H
#define TF_WIRE_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "wire/gzfile.h"

#define CSV_DETECT                                                                                 \
    '\0' /* as separator: the first row decides among comma, semicolon, tab, blanks */
#define CSV_BLANKS                                                                                 \
    ' ' /* as separator: any run of blanks and tabs; those at both ends do not count */
#define CSV_ROW_BYTES_MAX ((size_t)64 << 20)
#define CSV_FIELDS_MAX ((size_t)1 << 20)

struct csv_field {
    const char *text; /* unquoted, not terminated */
    size_t n;
    bool quoted;
};

struct csv_row {
    const struct csv_field *fields;
    size_t n_fields;
    uint64_t line; /* of its first character, from 1 */
};

struct csv_reader;

/* `comment` begins a comment line; '\0': there are none. The file is borrowed. Never fails. */
struct csv_reader *csv_reader_new(struct gzfile *file, char separator, char comment);
void csv_reader_free(struct csv_reader *reader);

/* Writes a field so that it is read as it is: in quotes where it needs them. */
void csv_write_field(FILE *out, char separator, const char *text, size_t n);

/* The next row, valid until the next call. *more is false at the end. ERR_DATA "FILE:LINE: ..." */
int csv_read(struct csv_reader *reader, struct csv_row *row, bool *more, struct error *err);

#endif
