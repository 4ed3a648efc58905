/* SPDX-License-Identifier: Apache-2.0
 *
 * Marks: attributes that any node may have, and that some tool reads. Their names begin with '_' as
 * those of free attributes do, but a value of another kind is refused: it would mean nothing.
 */
#ifndef TF_GRAPH_MARKS_H
#define TF_GRAPH_MARKS_H

#include "graph/op.h"

/* Of which an evaluation takes what its steps give together: their sum, or their rows one after the
 * other. What is computed of it then is the score of all rows (ops/prelude/metric.lua). */
#define TOTAL "_total"
#define TOTAL_SUM "sum"
#define TOTAL_ROWS "rows"

/* What the mark's values are; NULL: an attribute that is free. */
const struct op_attr *mark_find(const char *name);

#endif
