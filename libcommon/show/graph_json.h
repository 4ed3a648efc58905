/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph as JSON lines, one object per node, in the order of the text form: name, op, inputs (with
 * "^" for control edges), attrs, type (as text), device, assigned, file and line.
 */
#ifndef TF_SHOW_GRAPH_JSON_H
#define TF_SHOW_GRAPH_JSON_H

#include "graph/graph.h"

/* Constants of more than `elide` elements are shown as null (< 0: none are). */
int show_graph_json(struct str *out, const struct graph *graph, int64_t elide, struct error *err);

#endif
