/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups of nodes to be colocated on one device. A node lists its groups in the attribute `_class`,
 * each as "loc:@NAME", NAME being the node that leads the group.
 */
#ifndef TF_GRAPH_GROUP_H
#define TF_GRAPH_GROUP_H

#include "graph/graph.h"

/* Returns the name within "loc:@NAME", a part of the text; NULL: the text has another form. */
const char *group_leader_name(const char *group);

/* Returns the node that leads the group; NULL: another form of text, or there is no such node. */
const struct node *group_leader(const struct graph *graph, const char *group);

/* The same of the first group that a node lists. */
const struct node *group_first_leader(const struct graph *graph, const struct node *node);

/* Returns a `_class` attribute that names this leader alone; its texts are in the arena. */
struct attr group_attr(struct arena *arena, const char *leader);

#endif
