/* SPDX-License-Identifier: Apache-2.0
 *
 * What a user asks of a graph by name: entries to run, tensors to fetch, what must be fed for them.
 */
#ifndef TF_EXEC_REQUEST_H
#define TF_EXEC_REQUEST_H

#include "base/vec.h"
#include "graph/edge_map.h"

struct request {
    const struct graph *graph;
    VEC(struct edge) fetches;
    VEC(const char *) names;  /* of the fetches, as the user knows them; borrowed or in the graph */
    VEC(int) targets;         /* node ids */
    struct map known;         /* the same names */
    struct edge_map alias_of; /* by edge: index of its first alias; once an entry was asked for */
};

/* The request starts zeroed but for `graph`. Names an entry, or else a node to run. ERR_DATA
 * listing what there is. */
int request_run(struct request *request, const char *name, struct error *err);

/* A tensor by name; asked for twice it is fetched once. */
int request_fetch(struct request *request, const char *name, struct error *err);

void request_release(struct request *request);

/* The sources (placeholders) that the request needs, by node id; `fed` edges cut the search. The
 * caller frees the vector. */
struct node_list {
    int *items;
    size_t n, capacity;
};
void request_needs(const struct request *request, const struct edge *fed, int n_fed,
                   struct node_list *needs);

/* Returns whether a step of the request would use what the node gives if it were not fed. */
bool request_uses(const struct request *request, int node);

/* A mark by node for each that a step runs, Sends of Recvs too, in the arena. */
const bool *request_mark_used(const struct request *request, const struct edge *fed, int n_fed,
                              struct arena *memory);

/* The facts of a fetch. */
struct request_view {
    bool
        before; /* variables as they were before the step changed them; else as they are after it */
    bool of_own; /* also of what a worker has for itself, as a copy of what shards keep */
};
/* Returns the view of each fetch; the caller frees the array. */
struct request_view *request_views(const struct request *request);

/* A trained variable whose value a step reads that changes no variable, so that it answers by what
 * was restored; -1: there is none. */
int request_only_reads(const struct request *request, const struct edge *fed, int n_fed);

/* "x float32[?,64], y int32[?]" */
void request_print_needs(struct str *out, const struct graph *graph, const struct node_list *needs);

#endif
