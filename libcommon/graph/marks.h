/* SPDX-License-Identifier: Apache-2.0
 *
 * Marks: attributes that any node may have, and that some tool reads. Their names begin with '_' as
 * those of free attributes do, but a value of another kind is refused: it would mean nothing.
 */
#ifndef TF_GRAPH_MARKS_H
#define TF_GRAPH_MARKS_H

#include "graph/op.h"

/* What the mark's values are; NULL: an attribute that is free. */
const struct op_attr *mark_find(const char *name);

#endif
