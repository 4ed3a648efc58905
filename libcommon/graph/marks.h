/* SPDX-License-Identifier: Apache-2.0
 *
 * Marks: attributes that any node may have and that some tool reads. Like free attributes, their
 * names begin with '_'; but a value of the wrong kind is refused, as it would mean nothing.
 */
#ifndef TF_GRAPH_MARKS_H
#define TF_GRAPH_MARKS_H

#include "graph/op.h"

/* Marks a value that an evaluation accumulates over its steps: as a sum, or as rows appended one
 * after the other. Values computed from it are scores of all rows (ops/prelude/metric.lua). */
#define TOTAL "_total"
#define TOTAL_SUM "sum"
#define TOTAL_ROWS "rows"

/* Of a Variable that is a slice of a larger one. */
#define SLICE_OF "_slice_of"       /* string: the name of the whole */
#define SLICE_SHAPE "_slice_shape" /* shape of the whole */
/* int: the slice's first row in the whole; list(int): for a box, its offset along each axis. */
#define SLICE_OFFSET "_slice_offset"

/* Returns the constraints of the mark's value; NULL: a free attribute. */
const struct op_attr *mark_find(const char *name);

#endif
