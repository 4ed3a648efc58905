/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks whether gradients in a graph still match its forward nodes: someone who edits a graph's
 * text may change a node's op, but the gradient was made for the former op.
 */
#ifndef TF_BIN_TEXT_GRADIENTS_H
#define TF_BIN_TEXT_GRADIENTS_H

#include "cli/tool.h"
#include "graph/graph.h"

/* Warns of each forward node whose op's gradient function would not have made the nodes that bear
 * its name ("gradients/NAME_grad/..."). */
void text_gradients_check(const struct tool *tool, const struct graph *graph, const char *path);

#endif
