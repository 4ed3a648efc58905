/* SPDX-License-Identifier: Apache-2.0
 *
 * Fits a column to rows: finds the figures and the categories that data/column.h speaks of. Missing
 * values have no part in any of them.
 */
#ifndef TF_DATA_FIT_H
#define TF_DATA_FIT_H

#include "data/column.h"

/* Returns whether rows are needed: not if all was fitted before, or is given with the column. */
bool fit_needs_rows(const struct data_column *column);

/* Fills column->fitted from `raw`, [rows, ...] with at least one row; of categories it has the ids
 * in the order in which they came, and those become ascending. `missing`, which may be NULL, has a
 * place for each element. ERR_DATA names the row of a value that has no mean, and says so if a
 * column has no values at all. */
int fit_rows(const struct data_column *column, struct tensor *raw, const bool *missing,
             struct error *err);

#endif
