/* SPDX-License-Identifier: Apache-2.0
 *
 * A user's request on a graph, by name: entries to run, tensors to fetch, and what must be fed.
 */
#ifndef TF_EXEC_REQUEST_H
#define TF_EXEC_REQUEST_H

#include "exec/plan/plan.h"

struct request {
    const struct graph *graph;
    VEC(struct edge) fetches;
    VEC(const char *) names;  /* of the fetches, as the user knows them; borrowed or in the graph */
    VEC(int) targets;         /* node ids */
    struct map known;         /* the same names */
    struct edge_map alias_of; /* by edge: index of its first alias; filled for the first entry */
};

/* The request starts zeroed except for `graph`. Adds an entry, or else a node, to run. ERR_DATA
 * lists the entries. */
int request_run(struct request *request, const char *name, struct error *err);

/* Adds a tensor by name; a tensor that is added twice is fetched once. */
int request_fetch(struct request *request, const char *name, struct error *err);

/* Returns what a step of the request runs, with these feeds; the arrays are borrowed. */
struct plan_request request_with_feeds(const struct request *request, const struct edge *feeds,
                                       const struct tensor *values, size_t n_feeds);

void request_release(struct request *request);

/* The sources (placeholders) that the request needs, by node id; `fed` edges cut the search. The
 * caller frees the vector. */
struct node_list {
    int *items;
    size_t n, capacity;
};
void request_needs(const struct request *request, const struct edge *fed, int n_fed,
                   struct node_list *needs);

/* Returns whether a step of the request would use the node's outputs if they were not fed. */
bool request_uses(const struct request *request, int node);

/* The facts of a fetch. */
struct request_view {
    bool
        before; /* variables as they were before the step changed them; else as they are after it */
    bool of_own; /* also of variables local to a worker, such as copies of those of shards */
};
/* Returns the view of each fetch; the caller frees the array. */
struct request_view *request_views(const struct request *request);

/* A trained variable that a step reads, if the step changes no variable, so that its result depends
 * on what was restored; -1: there is none. */
int request_only_reads(const struct request *request, const struct edge *fed, int n_fed);

/* "x float32[?,64], y int32[?]" */
void request_print_needs(struct str *out, const struct graph *graph, const struct node_list *needs);

#endif
