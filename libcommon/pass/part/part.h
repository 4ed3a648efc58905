/* SPDX-License-Identifier: Apache-2.0
 *
 * Partitioning: a placed graph becomes one graph per device. A value is sent once to each other
 * device that needs it, by a pair of Send and Recv; for control edges, so is the completion of a
 * node. A variable that other writes may have changed before, or that a loop or a branch reads, is
 * read separately for each reader, when the reader could run. A dead value is sent as dead. A loop
 * with nodes on several devices iterates on each of them: where its condition is not computed, a
 * control loop receives it (the 2015 white paper, section 4.4). Every Send and Recv of a loop runs
 * once per iteration.
 *
 * Values that are cheaper to duplicate are not sent: each device that needs a constant makes it,
 * unless it is large. Several control edges from one device to a node cross as one, and those
 * implied by others are left out.
 *
 * A large value is received as late as possible without lengthening the step, according to
 * estimates: until then its Recv waits, by the attribute _after, for a node of its own part.
 *
 * The Enter and NextIteration of a loop variable move to the device of its Merge.
 *
 * Outputs of a node with the attribute _priority are sent with that priority (graph/graph.h). Small
 * values from one task to another cross in groups, attribute _group.
 *
 * Outputs of a node with the attribute _wire (bfloat16 or float16) are sent as that type if they
 * are float32: rounded to nearest even, and widened on arrival.
 */
#ifndef TF_PASS_PART_H
#define TF_PASS_PART_H

#include "pass/place/cost.h"

struct graph_part {
    const char *device; /* canonical; as in the source */
    struct device_name name;
    struct graph *graph;
};

/* A transfer from one part to another: a value, or, with CONTROL_SLOT, the completion of a node. */
struct part_crossing {
    struct edge edge; /* of the source */
    const int *also;  /* further completed nodes, of several control edges */
    int n_also;
    int from, to;  /* parts */
    int64_t bytes; /* -1: unknown shape */
    int next;      /* next of the same node; -1: the last */
    int frame;     /* the loop of the source in which it crosses */
    int reader;    /* of a variable, if the value is for it alone; else -1 */
    int recv;      /* node of the receiving part */
    int value;     /* that node, or the one that widens what it received */
};

struct parts {
    VEC(struct graph_part) parts; /* in order of the first occurrence of their devices */
    VEC(struct part_crossing) crossings;
};

/* Inputs of the time estimates besides ops and shapes: speeds of devices and links, and
 * measurements; each may be NULL. */
struct part_estimates {
    const struct cluster *cluster;
    const struct costs *costs;
};

/* The parts borrow from the graph, which must outlive them; `estimates` may be NULL. ERR_DATA
 * naming a node without a device, one that must be on the device of a variable that it writes, or a
 * loop over several devices without a LoopCond. */
int part_graph(const struct graph *graph, const struct part_estimates *estimates,
               struct parts *parts, struct error *err);
void parts_release(struct parts *parts);

#endif
