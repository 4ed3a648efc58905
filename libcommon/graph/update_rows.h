/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows that the gradient of an update covers.
 */
#ifndef TF_GRAPH_UPDATE_ROWS_H
#define TF_GRAPH_UPDATE_ROWS_H

#include "graph/graph.h"

/* int, of an update by a gradient (op_def.descent): the first row of the variable and its slots
 * that the gradient covers; rows that it does not cover stay as they are. */
#define UPDATE_FIRST_ROW "_first_row"

/* Returns -1 if the gradient covers the whole variable. */
static inline int64_t update_first_row(const struct node *node)
{
    const struct attr_value *first = node_attr(node, UPDATE_FIRST_ROW);
    return first && first->kind == ATTR_INT ? first->i : -1;
}

/* Returns whether a gradient can cover the rows of the updated variable from `first` on, as far as
 * shapes are known. */
static inline bool update_rows_fit(const struct shape *updated, const struct shape *gradient,
                                   int64_t first)
{
    struct shape rows = *updated, merged;
    bool is_known = updated->rank > 0 && gradient->rank > 0;
    if (is_known)
        rows.dims[0] = gradient->dims[0];
    if (!updated->rank || !shape_merge(&rows, gradient, &merged))
        return false;
    return !is_known || updated->dims[0] < 0 || gradient->dims[0] <= updated->dims[0] - first;
}

#endif
