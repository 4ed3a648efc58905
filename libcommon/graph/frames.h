/* SPDX-License-Identifier: Apache-2.0
 *
 * The structure that control flow gives a graph: in which loop (frame) each node runs, and under
 * which conditions. Frames are what Enter opens and Exit leaves, identified by the parent frame and
 * the frame_name; conditions are the (predicate, branch) pairs of the Switches between a node and
 * the start of its frame. The white paper, section 4.4, describes the primitives.
 *
 * All inputs of a node must come from one frame, except variables, which are in all frames. An
 * Enter runs in the parent and its result belongs to the child; an Exit runs in the child and its
 * result belongs to the parent.
 */
#ifndef TF_GRAPH_FRAMES_H
#define TF_GRAPH_FRAMES_H

#include "graph/graph.h"

#define FRAME_ROOT 0
#define CONDITION_NONE (-1)
#define FRAMES_DEPTH_MAX 1000 /* nesting of loops, and of conditions */

/* Merge(Enter, NextIteration) -> Switch(.., LoopCond) -> Exit, body. Node ids; -1: there is none.
 */
struct loop_variable {
    int frame;
    int enter, merge, next, switch_, exit;
};

struct graph_frame {
    const char *name; /* frame_name; "" for the root */
    int parent;       /* -1 for the root */
    int depth;        /* 0 for the root */
    int loop_cond;    /* node id; -1: none */
    int condition;    /* that it runs under in its parent, as the last variable to enter has it */
    int parallel_iterations;
    int first_variable; /* the first of its n_enters consecutive variables */
    int n_enters;       /* into this frame, constant ones included */
};

struct condition {
    struct edge predicate; /* outside of loops, or in the frame of the Switch */
    int branch;            /* output of the Switch: 0 false, 1 true */
    int parent;            /* an outer condition, or CONDITION_NONE */
    int depth;             /* 1 for an outermost one */
    bool never;            /* it requires both branches of one predicate */
};

struct frames {
    VEC(struct graph_frame) frames;      /* parents come before children */
    VEC(struct condition) conditions;    /* likewise */
    VEC(struct loop_variable) variables; /* by frame */
    int *parents;                        /* of the frames */
    int *frame;                          /* by node id: the frame it runs in */
    int *condition; /* by node id: it runs only under this; for a Merge: its result's */
    int *variable;  /* by node id: of an Enter, Merge, NextIteration, Switch, Exit; or -1 */
    bool has_control_flow;
    struct map condition_index; /* "parent predicate branch" -> index */
    struct arena arena;
};

/* Analyses a graph that is closed (no open inputs). ERR_DATA naming the node that breaks a rule or
 * goes deeper than FRAMES_DEPTH_MAX. Outputs in the map (NULL: none) are fed: a fed value exists in
 * every loop, too. The result borrows names from the graph and is freed by frames_free. */
struct edge_map;
int frames_new_fed(const struct graph *graph, const struct edge_map *fed, struct frames **frames,
                   struct error *err);
#define frames_new(graph, frames, err) frames_new_fed((graph), NULL, (frames), (err))
void frames_free(struct frames *frames);

/* Returns the frame that the node's outputs belong to. */
int frames_output(const struct frames *frames, const struct node *node);

/* Returns the condition under which an edge carries a live value. */
int frames_edge_condition(const struct frames *frames, const struct graph *graph, struct edge edge);

/* Returns true if `outer` holds whenever `inner` does. */
bool frames_implies(const struct frames *frames, int inner, int outer);

/* Returns whether the node is a Switch that steers a loop rather than a conditional. */
bool frames_is_loop_switch(const struct graph *graph, const struct node *node);

#endif
