/* SPDX-License-Identifier: Apache-2.0
 *
 * Which columns of a table are meant: positions as in cut(1), names, patterns of names as a shell
 * has them, and, behind a minus, which of those not: "1,3-5", "age,bmi", "*,-id,-target". A name
 * that the header has is always that name, whatever it looks like, and a position is no name.
 */
#ifndef TF_DATA_CSV_WHERE_H
#define TF_DATA_CSV_WHERE_H

#include "base/vec.h"
#include "data/column.h"
#include "data/csv_header.h"

struct csv_places {
    VEC(int64_t)
    at;           /* indices from 0, in the order of the list; a pattern's as the file has them */
    bool is_list; /* more than one was meant: a row is a vector */
};

/* Finds a column. `header` may have no names. ERR_DATA; the error's text is the cause alone. */
int csv_where_bind(const struct data_column *column, const struct csv_header *header,
                   size_t n_fields, struct csv_places *places, struct error *err);

/* Returns whether it asks for anything by name. */
bool csv_where_has_names(const char *where);

/* Returns whether the header has all that is asked for by name, as far as `known` (names that such
 * a file has; NULL) says what that is. */
bool csv_where_is_in(const char *where, const struct csv_header *header,
                     const struct csv_header *known);

#endif
