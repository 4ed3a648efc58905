/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON lines as rows of a table: one object per line. Nested values are named by their path: {"a":
 * {"b": 1}, "x": [2, 3]} has the columns a.b, x[0] and x[1]. The columns are those that are learnt
 * of before, and those of the first object; another may lack some, which are then null, and may
 * have others, which are ignored. Blank lines are skipped. Not thread-safe.
 */
#ifndef TF_DATA_JSONL_H
#define TF_DATA_JSONL_H

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "wire/csv.h"

/* The columns, shared by all files of a source. Zero-initialised is empty. */
struct jsonl_columns {
    VEC(const char *) names; /* since they were read by place, before as they were found */
    VEC(size_t) next;        /* before: behind each, from 1 on, and behind none the first, */
    size_t n_expected;       /* those before all that are found; 0: that is the last */
    struct map places;
    struct arena arena;
    bool are_read; /* their names were read as a row */
};

void jsonl_columns_release(struct jsonl_columns *columns);
/* Adds a new one behind another, both from 1 on, or in front of all (0); returns which it is. */
size_t jsonl_columns_add(struct jsonl_columns *columns, const char *name, size_t at);

struct jsonl_reader;

/* File and columns are borrowed. Never fails. */
struct jsonl_reader *jsonl_reader_new(struct gzfile *file, struct jsonl_columns *columns);
void jsonl_reader_free(struct jsonl_reader *reader);

/* Reads all objects of the file for the names of their columns. ERR_DATA. */
int jsonl_learn(struct jsonl_reader *reader, struct error *err);

/* Reads the next row, valid until the next call; the first row of all is the column names. Texts
 * are unquoted, numbers and bools are as JSON writes them, null is empty. *more is false at the
 * end. ERR_DATA "FILE:LINE: ..." */
int jsonl_read(struct jsonl_reader *reader, struct csv_row *row, bool *more, struct error *err);

#endif
