/* SPDX-License-Identifier: Apache-2.0
 *
 * Fits a column to rows: finds the figures and categories that data/column.h describes, ignoring
 * missing values.
 */
#ifndef TF_DATA_FIT_H
#define TF_DATA_FIT_H

#include "data/column.h"

/* Returns whether fitting needs rows: not if all was fitted before, or is given with the column. */
bool fit_needs_rows(const struct data_column *column);

/* Fills column->fitted from `raw`, [rows, ...] with at least one row; ids of categories in it are
 * in order of appearance, and become ascending. `missing`, which may be NULL, has an element for
 * each of raw's. ERR_DATA names the row of a value that has no mean, or says that a column has no
 * values at all. */
int fit_rows(const struct data_column *column, struct tensor *raw, const bool *missing,
             struct error *err);

#endif
