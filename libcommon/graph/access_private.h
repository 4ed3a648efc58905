/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph of one loop, or of what is outside of loops, in which each loop within it is one
 * vertex; and the rule of access.h as edges between those and the points of reads. Private to the
 * files that order accesses.
 */
#ifndef TF_GRAPH_ACCESS_PRIVATE_H
#define TF_GRAPH_ACCESS_PRIVATE_H

#include <stdint.h>

#include "base/arena.h"
#include "graph/access.h"

struct access_level {
    const struct access_graph *graph;
    int frame, n; /* n: vertices */
    int *vertex;  /* by node; -1: it is not in the frame */
    int *node;    /* by vertex: one of its nodes */
    access_edge_vec edges, orders;
    int *first; /* by vertex, and one more: of the edges from there */
    int *order; /* vertices by paths; those on a cycle, if there is one, come last */
    struct arena memory;
};

void access_level_init(struct access_level *level, const struct access_graph *graph, int frame);
void access_level_release(struct access_level *level);
/* By vertex: bit i is set if a path leads there from from[i], i < 64, which is another vertex. */
void access_level_reach(const struct access_level *level, const int *from, int n,
                        uint64_t *reached);

struct rule_edge {
    int from, to;
    int access; /* whose user comes before a write, if it is not to have a copy; -1: in any case */
};

/* Vertices of the level come first, then points. */
struct access_rule {
    struct access_level level;
    int n;        /* vertices */
    int *point;   /* by access: c(R), the node's own vertex if there is none; -1: not of a read that
                   * is ordered here */
    bool *writes; /* by vertex */
    bool *copied; /* by access: some user comes after a write that comes after c(R) */
    VEC(struct rule_edge) edges; /* without those of the level */
    int *component;              /* by vertex: strongly connected ones have the same */
    struct arena memory;
};

/* False: nothing is to be ordered in the frame, and there is nothing to release. */
bool access_rule_init(struct access_rule *rule, const struct access_graph *graph, int frame);
void access_rule_release(struct access_rule *rule);

/* False: what is said is optional, and would close a cycle. */
static inline bool access_rule_holds(const struct access_rule *rule, const struct rule_edge *edge)
{
    return edge->access < 0 || (!rule->copied[edge->access] &&
                                rule->component[edge->from] != rule->component[edge->to]);
}

/* All edges of the rule and its level that hold, by producer: those of vertex v are to[first[v]] to
 * to[first[v + 1]]; freed by the caller. */
struct access_successors {
    int *first, *to;
};
struct access_successors access_rule_successors(const struct access_rule *rule);

/* Whether the frame has an order of its own to be found: some node in it, or in a loop in it,
 * writes. */
bool access_frame_writes(const struct access_graph *graph, int frame);

#endif
