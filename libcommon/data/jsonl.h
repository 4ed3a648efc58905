/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON lines as rows of a table: an object a line. A nested value is named by its path: {"a": {"b":
 * 1}, "x": [2, 3]} has the columns a.b, x[0] and x[1]. The columns are those of the first object;
 * another one may leave some out, which are null there, and have others, which are passed over.
 * Blank lines are, too. Not thread-safe.
 */
#ifndef TF_DATA_JSONL_H
#define TF_DATA_JSONL_H

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "wire/csv.h"

/* The columns, which all files of a source share. Zero-initialised is empty. */
struct jsonl_columns {
    VEC(const char *) names;
    struct map places;
    struct arena arena;
};

void jsonl_columns_release(struct jsonl_columns *columns);

struct jsonl_reader;

/* File and columns are borrowed. Never fails. */
struct jsonl_reader *jsonl_reader_new(struct gzfile *file, struct jsonl_columns *columns);
void jsonl_reader_free(struct jsonl_reader *reader);

/* The next row, valid until the next call; if there are no columns yet, the first one is their
 * names. Texts are as they are, numbers and bools as JSON writes them, null is empty. *more is
 * false at the end. ERR_DATA "FILE:LINE: ..." */
int jsonl_read(struct jsonl_reader *reader, struct csv_row *row, bool *more, struct error *err);

#endif
