/* SPDX-License-Identifier: Apache-2.0
 *
 * The names of a table's columns, and whether its first row contains them.
 */
#ifndef TF_DATA_CSV_HEADER_H
#define TF_DATA_CSV_HEADER_H

#include "base/arena.h"
#include "base/map.h"
#include "wire/csv.h"

/* Decides by the row alone, as a pipe's first row is not held back until there is a second to
 * compare. A row is data if one of its fields has a value (cells.h), or if all are missing. An
 * exception decided by likelihood: a missing field, then 0, 1, 2 and so on to the last one, is how
 * pandas names the columns of an array after its index. */
bool csv_row_is_header(const struct csv_row *row);

struct csv_header {
    const char *const *names; /* NULL: there is no header */
    size_t n;
    struct map places;  /* -1: a name of several columns */
    struct arena arena; /* for names read from the file */
};

/* Blanks around a name are ignored. */
void csv_header_take(struct csv_header *header, const struct csv_row *row);
void csv_header_share(struct csv_header *header, const char *const *names, size_t n);
void csv_header_release(struct csv_header *header);

bool csv_header_has(const struct csv_header *header, const char *name, size_t n);

/* ERR_DATA: no column has the name, or several have. */
int csv_header_find(const struct csv_header *header, const char *name, size_t n, int64_t *place,
                    struct error *err);

#endif
