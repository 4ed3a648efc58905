/* SPDX-License-Identifier: Apache-2.0
 *
 * One attribute of the text form; internal to its reader.
 */
#ifndef TF_GRAPH_TEXT_ATTR_H
#define TF_GRAPH_TEXT_ATTR_H

#include "graph/op.h"

/* Reads "name=value" or, for free attributes, "_name:kind=value". `dtype` is the element type of
 * tensors that do not say theirs. Returns the end, or NULL with the error set; everything lies in
 * the arena. */
const char *text_parse_attr(struct arena *arena, const char *text, const struct op *op,
                            enum dtype dtype, struct attr *attr, struct error *err);

#endif
