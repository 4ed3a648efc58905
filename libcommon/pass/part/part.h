/* SPDX-License-Identifier: Apache-2.0
 *
 * Partition: a placed graph becomes one graph for each device. Each value that crosses is sent once
 * to each device that needs it, by a pair of Send and Recv; so is that a node is over, for control
 * edges. A variable that other writes may have changed before, or that a loop or a branch reads, is
 * read for each reader on its own, when that could run. A dead value is sent as dead. A loop whose
 * nodes are on several devices goes round on each of them: where the loop's own condition is not, a
 * control loop receives it (the 2015 white paper, section 4.4). Every Send and Recv of a loop runs
 * once in each iteration.
 *
 * What costs less to have twice is not sent: a constant is made on each device that needs it,
 * unless it is large. Several control edges from one device to a node cross as one, and one that
 * says no more than others do is left out.
 *
 * A large value is received no earlier than it has to be for the step to take no longer, as far as
 * estimates go: until then its Recv waits, by the attribute _after, for a node of its own part.
 *
 * The Enter and NextIteration of a loop variable move to the device of its Merge.
 *
 * What a node with the attribute _priority computes is sent with that (graph/graph.h). Small values
 * that go from one task to another have groups to cross in, attribute _group (part_delay.c).
 *
 * What a node with the attribute _wire computes (bfloat16 or float16) crosses in that type if it is
 * float32: rounded to nearest even, and widened where it arrives.
 */
#ifndef TF_PASS_PART_H
#define TF_PASS_PART_H

#include "pass/place/cost.h"

struct graph_part {
    const char *device; /* canonical; the source's */
    struct graph *graph;
};

/* A crossing from one part to others: a value, or, with CONTROL_SLOT, the end of a node. */
struct part_crossing {
    struct edge edge; /* of the source */
    const int *also;  /* further nodes that are over, of several control edges */
    int n_also;
    int from, to;  /* parts */
    int64_t bytes; /* -1: the shape is not known */
    int next;      /* among those of the same node; -1: the last */
    int frame;     /* where it crosses: a loop of the source */
    int reader;    /* of a variable, when nobody else can use what it is sent; -1 */
    int recv;      /* node of the part that receives */
    int value;     /* that node, or what widens what it received again */
};

struct parts {
    VEC(struct graph_part) parts; /* in the order in which devices first occur */
    VEC(struct part_crossing) crossings;
};

/* Returns whether the edge is a variable itself, which is there in every loop. */
bool part_is_variable(const struct graph *graph, struct edge edge);

/* The variable that a node changes, or NULL. */
const struct node *part_written(const struct graph *graph, const struct node *node);

/* The estimates of a step's time, besides ops and shapes: the speed of devices and links, and
 * measurements; each may be NULL. */
struct part_estimates {
    const struct cluster *cluster;
    const struct costs *costs;
};

/* The parts borrow from the graph, which must outlive them; `estimates` may be NULL. ERR_DATA
 * naming a node without a device, one that cannot be on another device than what it changes, or a
 * loop over several devices that has no LoopCond. */
int part_graph(const struct graph *graph, const struct part_estimates *estimates,
               struct parts *parts, struct error *err);
void parts_release(struct parts *parts);

#endif
