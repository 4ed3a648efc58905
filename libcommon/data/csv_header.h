/* SPDX-License-Identifier: Apache-2.0
 *
 * The names of a table's columns, and whether its first row has them.
 */
#ifndef TF_DATA_CSV_HEADER_H
#define TF_DATA_CSV_HEADER_H

#include "base/arena.h"
#include "base/map.h"
#include "wire/csv.h"

/* By the row alone, as rows of a pipe are not held back until there is another one to compare it
 * with. A row is data if a field of it has a value (cells.h), or if none says anything. One case is
 * decided by what is likely: nothing, then the numbers 0, 1, 2 and so on to the last field, is how
 * pandas names the columns of an array, beside its index. */
bool csv_row_is_header(const struct csv_row *row);

struct csv_header {
    const char *const *names; /* NULL: there is no header */
    size_t n;
    struct map places;  /* -1: of a name that several have */
    struct arena arena; /* of names that were in the file */
};

/* Blanks around a name do not count. */
void csv_header_take(struct csv_header *header, const struct csv_row *row);
void csv_header_share(struct csv_header *header, const char *const *names, size_t n);
void csv_header_release(struct csv_header *header);

bool csv_header_has(const struct csv_header *header, const char *name, size_t n);

/* ERR_DATA: nothing is called so, or several columns are. */
int csv_header_find(const struct csv_header *header, const char *name, size_t n, int64_t *place,
                    struct error *err);

#endif
