/* SPDX-License-Identifier: Apache-2.0
 *
 * Tells the two families of convolutions apart: Conv2D, and LocallyConnected2D, which has a filter
 * for each position.
 */
#ifndef TF_OPS_NN_LOCAL_H
#define TF_OPS_NN_LOCAL_H

#include "graph/graph.h"

static inline bool conv_is_local(const struct node *node)
{
    return !__builtin_strncmp(node->op->def->name, "Local", 5);
}

/* The last four dimensions of a filter are [height, width, in channels, out channels]; before them
 * are those of the positions, if any. */
static inline int conv_filter_rank(const struct node *node)
{
    return conv_is_local(node) ? 6 : 4;
}

#endif
