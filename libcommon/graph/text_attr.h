/* SPDX-License-Identifier: Apache-2.0
 *
 * One attribute of the text form, and what it says of types; internal to its reader.
 */
#ifndef TF_GRAPH_TEXT_ATTR_H
#define TF_GRAPH_TEXT_ATTR_H

#include "graph/assemble.h"

/* Reads "name=value" or, for free attributes, "_name:kind=value". `dtype` is the element type of
 * tensors that do not say theirs. Returns the end, or NULL with the error set; everything lies in
 * the arena. */
const char *text_parse_attr(struct arena *arena, const char *text, const struct op *op,
                            enum dtype dtype, struct attr *attr, struct error *err);

/* ERR_DATA, and the line of the text, for a node whose types are not what its line says. Shapes may
 * be others, as one that was edited changes those of all that is computed of it. */
int text_check_types(const struct raw_graph *raw, const struct graph *graph, int *line,
                     struct error *err);

#endif
