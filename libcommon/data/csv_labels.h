/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a table's columns are those that something was fitted to: by name, or by position where
 * there was no header.
 */
#ifndef TF_DATA_CSV_LABELS_H
#define TF_DATA_CSV_LABELS_H

#include "data/column.h"
#include "data/csv_where.h"

/* Keeps in column->fitted which columns these are, or checks it if that is known. ERR_DATA names
 * the columns. Nothing happens to a column that is not fitted. */
int csv_labels_bind(const struct data_column *column, const struct csv_places *places,
                    const struct csv_header *header, struct error *err);

/* Keeps the names of all columns; nothing happens if there is no header. */
void csv_labels_keep(struct prep *prep, const struct csv_header *header);

#endif
