/* SPDX-License-Identifier: Apache-2.0
 *
 * Marks: attributes that any node may have, and that some tool reads. Their names begin with '_' as
 * those of free attributes do, but a value of another kind is refused: it would mean nothing.
 */
#ifndef TF_GRAPH_MARKS_H
#define TF_GRAPH_MARKS_H

#include "graph/op.h"

/* Marks a value whose results an evaluation puts together over its steps: their sum, or their rows
 * one after the other. Values computed from it are scores of all rows (ops/prelude/metric.lua). */
#define TOTAL "_total"
#define TOTAL_SUM "sum"
#define TOTAL_ROWS "rows"

/* Returns the values that the mark may have; NULL: a free attribute. */
const struct op_attr *mark_find(const char *name);

#endif
