/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of reads and writes of variables within a step.
 *
 * Each read R of a variable has a point c(R) before it, at which it sees the variable. The writes
 * of the variable from which a path of the graph leads to R come before c(R), and c(R) comes before
 * all others. The rule can be satisfied if and only if that is acyclic together with the graph.
 *
 * All writes are put in one order, in which a write comes only when it may, and of several that may
 * the one whose name is first. So the result depends on nodes, edges and names of writes alone,
 * never on the order in which they are listed.
 *
 * Values that are the variable's own memory (an Identity in a plan with planned memory) make their
 * consumers look at the variable, too: they are *users* of the read. The users of a read, and R
 * itself, run before the write that follows c(R) where that closes no cycle; where it would, the
 * read is given a copy that is made at c(R). So is a node that reads what it writes.
 *
 * What never runs in the same step, because conditions exclude each other, has no order.
 *
 * A loop is one node for what is outside of it: what its nodes read they see while it runs, and no
 * point of their own comes before it. In a loop the same is true of each read. What enters it is
 * read before, as an Enter is a node of the outside; but it waits for what the loop comes after.
 *
 * Reads of a variable that follow the same writes share a point. As the sets of writes that reads
 * follow contain each other where the rule can be satisfied, points and writes are one sequence,
 * and what is known of it grows with reads and writes, not with pairs of them.
 */
#ifndef TF_GRAPH_ACCESS_H
#define TF_GRAPH_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"

struct access_edge {
    int from, to;
};

struct access {
    int variable; /* equal if and only if the variable is the same */
    int node;
    int input; /* of the node; it means nothing here */
    bool write;
    bool copies; /* a read outside of loops: a copy of the value would do */
    bool taken;  /* such a read, of which a copy is made where any write follows */
};

/* Where an access is known to be in a frame, for which each loop within it is one node. A write is
 * the place-th of its variable, counted from 2; a read sees so many, counted from 1. */
struct access_place {
    int access, frame, place;
};
typedef VEC(struct access_place) access_place_vec;

/* A predicate that has gone one way; predicates are numbers. */
struct access_condition {
    int predicate, branch;
    int parent; /* another one, which holds as well; -1 */
};

struct access_user {
    int access; /* a read */
    int node;   /* that looks at the same memory, besides the read's own */
};

typedef VEC(struct access_edge) access_edge_vec;

/* The nodes to be ordered, which are numbers below n. */
struct access_graph {
    int n;
    const char *const *names; /* by node */
    const int *frame;         /* by node: the loop that it runs in; NULL: there are no loops */
    const int *parent;        /* by frame; -1 of frame 0, the root; parents come first */
    int n_frames;
    const int *enters;    /* by node: the loop that it brings something into; 0: none; or NULL */
    const int *condition; /* by node: under which it runs, in its frame; -1: always; or NULL */
    const int *frame_condition; /* by frame: under which the loop does, in its parent */
    VEC(struct access_condition) conditions;
    access_edge_vec edges;  /* data and control, without those from an iteration to the next */
    access_edge_vec wishes; /* no part of a path; followed where they close no cycle */
    VEC(struct access) accesses;
    VEC(struct access_user) users;
    access_place_vec
        places; /* of all accesses of a variable in a frame, or of none: paths say it */
};

struct access_copy {
    int access;        /* the read that is given it */
    int after, before; /* nodes that write: the ones around the point; after may be -1 */
};

/* Edges that make any order of running right, whatever a path of the graph makes wait: one that
 * ends in a branch that is not taken keeps no Merge from going on. A loop is meant as a whole where
 * the other is outside. */
struct access_order {
    access_edge_vec follows; /* from a write to the next one, and to the reads between them */
    access_edge_vec edges;   /* from reads, and users, to the write that follows */
    VEC(struct access_copy) copies;
    VEC(int) refused;        /* wishes that are not followed */
    access_place_vec places; /* where a part of the graph might find others */
};

/* ERR_DATA, naming the nodes, if the rule cannot be satisfied. The caller releases both. */
int access_order_find(const struct access_graph *graph, struct access_order *order,
                      struct error *err);
void access_graph_release(struct access_graph *graph);
void access_order_release(struct access_order *order);

/* Counts, for each read, the writes of its variable of which a path leads to its node in the frame
 * outside of loops, for which each loop is one node. The caller frees it. */
int *access_count_writes(const struct access_graph *graph);

/* The innermost loop that holds both; and the child of `outer` that holds `frame`, or outer. */
int access_common_frame(const int *parent, int a, int b);
int access_frame_below(const int *parent, int outer, int frame);

#endif
