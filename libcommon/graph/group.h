/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups of nodes that are to be on one device. A node lists its own in the attribute `_class`,
 * each as "loc:@NAME", NAME being the node that leads the group.
 */
#ifndef TF_GRAPH_GROUP_H
#define TF_GRAPH_GROUP_H

#include "graph/graph.h"

/* The name within "loc:@NAME", which points into the text; NULL: the text has another form. */
const char *group_leader_name(const char *group);

/* The node that leads the group; NULL: the text has another form, or there is no such node. */
const struct node *group_leader(const struct graph *graph, const char *group);

/* `_class` of a node that is in the group of the named one alone; its texts are the arena's. */
struct attr group_attr(struct arena *arena, const char *leader);

#endif
