/* SPDX-License-Identifier: Apache-2.0
 *
 * Updates that a step cannot tell apart but by what they update: the same nodes decide whether they
 * run, when, and which writes of variables they come after; the same nodes wait for them; and they
 * update variables that nothing else writes in the same step. One node in place of several of them
 * gives no path between two other nodes that was not there before, so it makes no cycle, among the
 * parts of a graph neither, and who reads a variable sees what it saw before.
 */
#ifndef TF_EXEC_FUSE_ALIKE_H
#define TF_EXEC_FUSE_ALIKE_H

#include "exec/plan/fuse_private.h"

typedef VEC(int) node_vec;

struct alike_write {
    int variable, node;
};

struct alike {
    struct fuse_groups *groups;
    node_vec updates;    /* those that may be joined, by their number */
    const int *variable; /* by node: of which it gives a reference, a node; -1: it gives none */
    VEC(struct alike_write) writes;
    bool *updated;     /* by variable: an update writes it */
    uint64_t *entries; /* by node: bit i: entry i needs it, or a later one; all, where none are */
    bool *shows;       /* by node: what it gives may be memory of a variable that is updated */
    node_vec *waiters; /* by node: of updates, who waits for them */
    int *class;        /* by node: the first update that is like it; of updates only */
};

/* Looks at all nodes; everything but the vectors is in the groups' memory. */
void alike_init(struct alike *alike, struct fuse_groups *groups);
void alike_release(struct alike *alike);

/* The op that makes several updates at once, by the row of the node's kernel; NULL: it is none that
 * has such. */
const char *alike_joined_op(const struct fuse_groups *groups, const struct node *node);

bool alike_writes(const struct alike *alike, const struct node *node, int input);

/* fuse_alike_race.c: whether two writes of one variable have no order but that of their names. */
bool alike_has_race(const struct alike *alike);

/* fuse_alike_led.c: puts updates that not the same nodes lead to into classes of their own. */
void alike_split_by_causes(struct alike *alike);

#endif
