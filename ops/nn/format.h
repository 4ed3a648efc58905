/* SPDX-License-Identifier: Apache-2.0
 *
 * Where an image tensor's channels are: the attribute data_format.
 */
#ifndef TF_OPS_NN_FORMAT_H
#define TF_OPS_NN_FORMAT_H

#include "graph/graph.h"

#define FORMAT_ATTR "data_format: {\"NHWC\",\"NCHW\"} = \"NHWC\""

static inline bool format_is_nchw(const struct node *node)
{
    return !__builtin_strcmp(node_string(node, "data_format"), "NCHW");
}

/* Returns the channel axis of a tensor of that rank: the last one, or 1 for NCHW. */
static inline int format_channel_axis(const struct node *node, int rank)
{
    return format_is_nchw(node) ? 1 : rank - 1;
}

#endif
