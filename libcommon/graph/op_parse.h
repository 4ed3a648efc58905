/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses op declarations (the grammar is in op.h). For the registry.
 */
#ifndef TF_GRAPH_OP_PARSE_H
#define TF_GRAPH_OP_PARSE_H

#include "graph/op.h"

/* The parsed form is in the arena. ERR_INTERNAL naming the op and what is malformed. */
int op_parse(struct arena *arena, const struct op_def *def, struct op *op, struct error *err);

#endif
