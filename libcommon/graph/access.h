/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of reads and writes of variables within a step.
 *
 * Each read R of a variable has a point c(R) before it, at which it sees the variable. Writes of
 * the variable that have a path to R come before c(R); all other writes come after it. This rule
 * can be satisfied if and only if these orderings and the graph's edges together are acyclic.
 *
 * All writes are put in one total order; among several writes that may come next, the one whose
 * node name sorts first does. The result therefore depends only on the nodes, the edges and the
 * names of the writes, never on the order in which they are listed.
 *
 * A value may be the variable's own memory (the output of an Identity in a plan with planned
 * memory). Its consumers then look at the variable too: they are *users* of the read. R and its
 * users run before the write that follows c(R) unless that closes a cycle; in that case the read
 * gets a copy, made at c(R). So does a node that reads the variable that it writes.
 *
 * Nodes that exclude each other by their conditions never run in one step and are not ordered.
 *
 * From outside, a loop is one node: its reads see the variable while the loop runs, and none of
 * them has a point of its own. The same is true of a loop within a loop. An Enter belongs to the
 * outside, so its read comes before the loop; but the Enter waits for all that the loop waits for.
 *
 * Reads of a variable that follow the same writes share a point. Where the rule can be satisfied,
 * the sets of writes that two reads follow contain one another; so points and writes form one
 * sequence, and memory grows with the number of reads and writes, not of their pairs.
 */
#ifndef TF_GRAPH_ACCESS_H
#define TF_GRAPH_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/topology.h"

struct access {
    int variable; /* equal if and only if the variable is the same */
    int node;
    int input; /* of the node; not used here */
    bool write;
    bool copies; /* a read outside of loops; a copy could serve */
    bool taken;  /* such a read that gets a copy wherever any write follows */
};

/* The known place of an access within a frame, in which each inner loop is one node. A write is the
 * place-th of its variable, counted from 2; a read sees that many, counted from 1. */
struct access_place {
    int access, frame, place;
};
typedef VEC(struct access_place) access_place_vec;

/* One branch taken of a predicate; predicates are numbers. */
struct access_condition {
    int predicate, branch;
    int parent; /* an outer condition, which holds as well; -1: none */
};

/* The nodes to be ordered, which are numbers below n. */
struct access_graph {
    int n;
    const char *const *names; /* by node */
    const int *frame;         /* by node: the loop that it runs in; NULL: there are no loops */
    const int *parent;        /* by frame; -1 of frame 0, the root; parents come first */
    int n_frames;
    const int *enters;          /* by node: the loop that it is an Enter of; 0: none; or NULL */
    const int *condition;       /* by node: that it runs under in its frame; -1: always; or NULL */
    const int *frame_condition; /* by frame: the one that the loop runs under in its parent */
    VEC(struct access_condition) conditions;
    arc_vec edges;  /* data and control, without those from an iteration to the next */
    arc_vec wishes; /* no part of a path; followed unless they close a cycle */
    VEC(struct access) accesses;
    arc_vec users; /* from a read, which is an access, to other nodes that look at the same
                    * memory */
    access_place_vec
        places; /* of all accesses of a variable in a frame, or of none: then paths decide */
};

struct access_copy {
    int access;        /* the read that gets the copy */
    int after, before; /* writing nodes around the point; after may be -1 */
};

/* Edges that make every order of execution right, whatever a path of the graph makes wait. (A path
 * through a branch that is not taken does not hold back the Merge after it.) An end inside a loop
 * stands for the whole loop where the other end is outside. */
struct access_order {
    arc_vec follows; /* from a write to the next one, and to the reads between them */
    arc_vec edges;   /* from reads, and users, to the write that follows */
    VEC(struct access_copy) copies;
    VEC(int) refused;        /* wishes that are not followed */
    access_place_vec places; /* for parts of the graph, which might find other places */
};

/* ERR_DATA, naming the nodes, if the rule cannot be satisfied. The caller releases both. */
int access_order_find(const struct access_graph *graph, struct access_order *order,
                      struct error *err);
void access_graph_release(struct access_graph *graph);
void access_order_release(struct access_order *order);

/* Counts, for each read, the writes of its variable of which a path leads to its node in the frame
 * outside of loops, for which each loop is one node, and the node's own. The caller frees it. */
int *access_count_writes(const struct access_graph *graph);

/* Return the innermost loop around both; the child of `outer` that contains `frame`, or outer. */
int access_common_frame(const int *parent, int a, int b);
int access_frame_below(const int *parent, int outer, int frame);

#endif
