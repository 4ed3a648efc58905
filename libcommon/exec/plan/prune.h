/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of a graph that a request needs, as a graph of its own: everything that the fetches and
 * targets depend on, with each fed edge cut and a Placeholder in its place. Feeding cuts the data
 * edges of one output. When all outputs of a node are fed, its control edges are satisfied by the
 * feeds, and it does not run unless it is a target. Private to libcommon/exec.
 */
#ifndef TF_EXEC_PRUNE_H
#define TF_EXEC_PRUNE_H

#include "base/arena.h"
#include "exec/plan/plan.h"

struct prune {
    const struct graph *from;
    const struct plan_request *request;
    bool crosses; /* follows edges into other parts: a Recv's output is its Send's input */
    struct arena memory;
    struct edge_map fed; /* edge -> its feed */
    const bool *needed;  /* by node of `from` */
    struct graph *to;    /* the caller's */
    int *copy;           /* by node of `from`: of `to`, set by the caller; -1: none */
    int *slot;           /* by node of `from`: offset of its inputs, or outputs, in the copy */
    int *feed;           /* by feed: its node of `to`; -1: it is not needed */
};

/* Finds by node whether a request needs it, if the edges in `fed` are fed; the result is in
 * `memory`. */
const bool *prune_find_needed(const struct graph *graph, const struct plan_request *request,
                              const struct edge_map *fed, bool crosses, struct arena *memory);

/* Finds what is needed; borrows `from` and `request`. `to` is made empty. */
void prune_init(struct prune *prune, const struct graph *from, const struct plan_request *request,
                bool crosses);
void prune_release(struct prune *prune);

/* Connects the copies, when all of them exist. */
void prune_connect(struct prune *prune);
/* Returns the edge of `to` that stands for an edge of `from`: its feed's if it is fed. */
struct edge prune_edge(struct prune *prune, struct edge edge);

#endif
