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
    bool crosses; /* to other parts: what a Recv gives is what its Send is given */
    struct arena memory;
    struct edge_map fed; /* which feed is an edge's */
    const bool *needed;  /* by node of `from` */
    struct graph *to;    /* the caller's */
    int *copy; /* by node of `from`: of `to`, as the caller has made it; -1: there is none */
    int *slot; /* by node of `from`: where its inputs, or outputs, are among those of the copy */
    int *feed; /* node of `to`, by feed; -1: it is not needed */
};

/* Finds by node whether a request needs it, for which those edges are fed, in the arena's memory.
 */
const bool *prune_find_needed(const struct graph *graph, const struct plan_request *request,
                              const struct edge_map *fed, bool crosses, struct arena *memory);

/* Finds what is needed; borrows both. `to` is empty. */
void prune_init(struct prune *prune, const struct graph *from, const struct plan_request *request,
                bool crosses);
void prune_release(struct prune *prune);

/* Connects the copies, when all are there. */
void prune_connect(struct prune *prune);
/* Returns the edge of `to` that stands for one of `from`, a feed's if that is fed. */
struct edge prune_edge(struct prune *prune, struct edge edge);

#endif
