/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of costs (docs/costs.md): measured times of nodes and ops, and facts about types of
 * devices.
 */
#ifndef TF_GRAPH_COSTS_H
#define TF_GRAPH_COSTS_H

#include "base/map.h"
#include "graph/cluster.h"
#include "graph/graph.h"

struct costs {
    struct map nodes, ops; /* "NAME", "NAME TYPE" -> index into ns */
    struct map types;      /* "TYPE" -> index into facts */
    VEC(double) ns;
    VEC(struct device_facts) facts;
    struct arena arena;
};

/* Reads a file of costs into a zeroed struct. ERR_NOINPUT, or ERR_DATA "FILE:LINE: what". */
int costs_read(struct costs *costs, const char *path, struct error *err);
int costs_parse(struct costs *costs, const char *text, const char *name, struct error *err);
void costs_release(struct costs *costs);

/* Gets the measured time of a node in a step, or the mean of its op if the node was not measured:
 * on that type of device, else without a type. False: neither was measured. `costs` may be NULL. */
bool costs_find(const struct costs *costs, const struct node *node, const char *type, double *ns);

/* Gets the time of the node itself on that type of device; NULL: one without a type. */
bool costs_find_own(const struct costs *costs, const struct node *node, const char *type,
                    double *ns);

/* Returns the facts of a device: from the cluster and, where that has none, from the costs of its
 * type. Either may be NULL. */
struct device_facts cost_facts(const struct device_name *device, const struct cluster *cluster,
                               const struct costs *costs);

#endif
