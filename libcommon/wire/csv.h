/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a text table, as RFC 4180 defines them and as they occur: fields between separators,
 * quoted with "..." if they contain separators, line ends or quotes ("" is a quote; blanks after
 * the closing one belong to the field), lines that each end with LF, CRLF or CR, a byte order mark
 * at the start, comment lines. Blank lines are skipped. A comment may be a row, as "#N/A,1" is, if
 * no blank follows the character that begins it.
 *
 * A row is returned as soon as its line end was read. Not thread-safe.
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
};

struct csv_row {
    const struct csv_field *fields;
    size_t n_fields;
    uint64_t line;    /* of its first character, from 1 */
    uint64_t comment; /* the first since the row before that may be a row; 0: none */
};

struct csv_reader;

/* `comment` begins comment lines; '\0': there are none. The file is borrowed. Never fails. */
struct csv_reader *csv_reader_new(struct gzfile *file, char separator, char comment);
void csv_reader_free(struct csv_reader *reader);

/* Writes a field so that it is parsed unchanged: quoted where necessary. */
void csv_write_field(FILE *out, char separator, const char *text, size_t n);

/* Reads the next row, valid until the next call; *more: there was one. ERR_DATA "FILE:LINE: ..." */
int csv_read(struct csv_reader *reader, struct csv_row *row, bool *more, struct error *err);

#endif
