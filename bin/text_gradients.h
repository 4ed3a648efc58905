/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether gradients in a graph are still those of its forward nodes: who edits a text may change a
 * node's op, but its gradient was made for the op that it had.
 */
#ifndef TF_BIN_TEXT_GRADIENTS_H
#define TF_BIN_TEXT_GRADIENTS_H

#include "cli/tool.h"
#include "graph/graph.h"

/* Warns of each forward node whose op's gradient function would not have made the nodes that bear
 * its name ("gradients/NAME_grad/..."). */
void text_gradients_check(const struct tool *tool, const struct graph *graph, const char *path);

#endif
