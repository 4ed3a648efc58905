/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of the partitioner; private to libcommon/pass.
 */
#ifndef TF_PASS_PART_PRIVATE_H
#define TF_PASS_PART_PRIVATE_H

#include "graph/access.h"
#include "graph/frames.h"
#include "pass/part/part.h"

typedef VEC(int) part_node_vec;

/* A loop on one of the several devices that it is on. */
struct part_loop {
    bool here;
    int enter, merge;      /* of the control loop: nodes of the part */
    struct edge condition; /* the LoopCond there */
};

struct cutter {
    const struct graph *from;
    const struct part_estimates *estimates;
    struct parts *parts;
    struct frames *frames;
    int n;                   /* parts */
    int *part, *copy, *head; /* by node: its part, its copy there, its first crossing or -1 */
    struct part_loop *loops; /* by frame and part */
    int **constants;         /* by node and part: its copy plus 1; NULL: none yet */
    int *order, *position;   /* nodes in topological order; by node: its index there */
    int *implied, *seen;     /* by node: id + 1 of the node whose controls last marked it */
    part_node_vec todo;      /* stack of that search */
    const int *variable;     /* by node: the variable that it is or passes on; -1 */
    char *late;              /* by node: it reads a variable after a write that not all do */
    int n_made;              /* number of added nodes, for names */
    struct arena arena;
    struct error *err;
};

static inline struct part_loop *part_loop(const struct cutter *c, int frame, int part)
{
    return &c->loops[frame * c->n + part];
}

static inline struct graph *part_at(const struct cutter *c, int part)
{
    return c->parts->parts.items[part].graph;
}

/* Adds a node to a part, named after `near` of the source and its purpose; -1 on failure. Inferred
 * attributes may be left out. */
int part_add(struct cutter *c, int part, const struct node *near, const struct node_spec *spec);

/* Returns the value, in a part, of an edge of the source that `reader` needs; for CONTROL_SLOT, a
 * node to wait for. EDGE_NONE on failure. */
struct edge part_edge(struct cutter *c, struct edge edge, int part, const struct node *reader);

/* The same of what crosses so, once. */
struct edge part_cross(struct cutter *c, const struct part_crossing *wanted);

/* part_control.c: constants made by each part, and control edges. */
struct edge part_constant(struct cutter *c, const struct node *node, int part);
int part_connect_controls(struct cutter *c, const struct node *node);

/* ERR_DATA if one end is in each task of a job and the other in one of them only: a worker that
 * drives its own steps takes no part in another's. */
int part_check_tasks(const struct cutter *c, const struct part_crossing *crossing);

/* Finds loops that are on several devices; makes the control loops. */
int part_find_loops(struct cutter *c);
int part_make_loops(struct cutter *c);

/* part_delay.c: sets what each Recv waits for, and which small values cross in a group. */
int part_delay(struct cutter *c);

/* part_access.c: finds variables and late reads of them, before partitioning. */
void part_find_late(struct cutter *c);

/* Returns the variable, by its first node, that an edge is or passes on; -1: none. */
int part_variable(const struct cutter *c, struct edge edge);

#endif
