/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that a table's columns are those that something was fitted to: by name, or by position if
 * there was no header.
 */
#ifndef TF_DATA_CSV_LABELS_H
#define TF_DATA_CSV_LABELS_H

#include "data/column.h"
#include "data/csv_where.h"

/* Stores in column->fitted which columns these are, or, if known, checks them. ERR_DATA names the
 * columns. Does nothing for a column that is not fitted. */
int csv_labels_bind(const struct data_column *column, const struct csv_places *places,
                    const struct csv_header *header, struct error *err);

/* Stores the names of all columns; does nothing without a header. */
void csv_labels_keep(struct prep *prep, const struct csv_header *header);

#endif
