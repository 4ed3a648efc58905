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

static inline struct graph *part_at(const struct cutter *c, int part)
{
    return c->parts->parts.items[part].graph;
}

/* part_delay.c: sets what each Recv waits for, and which small values cross in a group. */
int part_delay(struct cutter *c);

#endif
