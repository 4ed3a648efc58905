/* SPDX-License-Identifier: Apache-2.0
 *
 * Selection of a table's columns: positions as in cut(1), names, shell patterns of names, and,
 * after a minus, exclusions: "1,3-5", "age,bmi", "*,-id,-target". A name that the header contains
 * is always taken as that name, whatever it looks like; a position is not a name.
 */
#ifndef TF_DATA_CSV_WHERE_H
#define TF_DATA_CSV_WHERE_H

#include "base/vec.h"
#include "data/column.h"
#include "data/csv_header.h"

struct csv_places {
    VEC(int64_t)
    at;           /* indices from 0, in list order; within a pattern in file order */
    bool is_list; /* more than one column is possible: a row is a vector */
};

/* Finds columns. `header` may have no names. ERR_DATA; the error has only the cause. */
int csv_where_bind(const struct data_column *column, const struct csv_header *header,
                   size_t n_fields, struct csv_places *places, struct error *err);

/* Returns whether `where` contains names. */
bool csv_where_has_names(const char *where);

/* Returns whether the header has all names in `where`; `known` (names that such a file has, or
 * NULL) tells what is a name. */
bool csv_where_is_in(const char *where, const struct csv_header *header,
                     const struct csv_header *known);

#endif
