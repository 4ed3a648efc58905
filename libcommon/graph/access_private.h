/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph of one loop, or of what is outside of loops, in which each loop within it is one
 * vertex; and the rule of access.h as edges between those and the points of reads. Private to the
 * files that order accesses.
 */
#ifndef TF_GRAPH_ACCESS_PRIVATE_H
#define TF_GRAPH_ACCESS_PRIVATE_H

#include "base/arena.h"
#include "graph/access.h"

struct access_level {
    const struct access_graph *graph;
    int frame, n; /* n: vertices */
    int *vertex;  /* by node; -1: it is not in the frame */
    int *node;    /* by vertex: one of its nodes */
    access_edge_vec edges;
    int *first; /* by vertex, and one more: of the edges from there */
    int *order; /* vertices by paths; those on a cycle, if there is one, come last */
    struct arena memory;
};

void access_level_init(struct access_level *level, const struct access_graph *graph, int frame);
void access_level_release(struct access_level *level);
/* By vertex: bit i is set if a path leads there from from[i], i < 64, which is another vertex. */
void access_level_reach(const struct access_level *level, const int *from, int n,
                        uint64_t *reached);

/* Drops edges between nodes of the level, from the first-th one on, where there is a path anyway.
 */
void access_level_drop_implied(const struct access_level *level, access_edge_vec *edges,
                               size_t first);

/* Whether two nodes never both run in one iteration of the frame. */
bool access_level_excludes(const struct access_level *level, int a, int b);

struct rule_edge {
    int from, to;
    bool optional;
    int access; /* optional: whose user comes before a write, if it is not to have a copy; or -1 */
    int wish;   /* or which wish it is; -1 */
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
    bool is_loose;               /* all edges of the rule within a component are left out */
    struct arena memory;
};

/* False: nothing is to be ordered in the frame, and there is nothing to release. */
bool access_rule_init(struct access_rule *rule, const struct access_graph *graph, int frame);
void access_rule_release(struct access_rule *rule);

static inline bool access_rule_holds(const struct access_rule *rule, const struct rule_edge *edge)
{
    if (edge->access >= 0 && rule->copied[edge->access])
        return false;
    return (!edge->optional && !rule->is_loose) ||
           rule->component[edge->from] != rule->component[edge->to];
}

/* All edges of the rule and its level that hold, by producer: those of vertex v are to[first[v]] to
 * to[first[v + 1]]; freed by the caller. */
struct access_successors {
    int *first, *to;
};
struct access_successors access_rule_successors(const struct access_rule *rule);

/* Whether some node of the frame, or of a loop in it, writes. */
bool access_frame_writes(const struct access_graph *graph, int frame);

/* access_sort.c: one topological order of what holds, in which writes come last and by name. */
struct access_sorter {
    const struct access_rule *rule;
    const struct access_graph *graph;
    struct access_successors next;
    int *pending;  /* by vertex */
    int *position; /* by vertex; -1: it is on a cycle, or after one */
    int n_placed;
    VEC(int) ready;      /* vertices that do not write */
    const char **name;   /* by vertex that writes: its first writer's */
    int *by_rank, *rank; /* vertices that write, by name; and back */
    bool *may_write;     /* by rank */
    int n_writes, n_may, lowest;
};

/* False: there is a cycle. To be released in any case. */
bool access_sort(struct access_sorter *sorter, const struct access_rule *rule);
void access_sort_release(struct access_sorter *sorter);
/* Names the nodes of a cycle; ERR_DATA. */
int access_sort_fail(const struct access_sorter *sorter, struct error *err);

/* Accesses that are ordered in the frame: each write, and the point of each read. */
struct access_place {
    int variable, position, access;
    int next; /* node of the variable's write that follows; -1: there is none */
};
typedef VEC(struct access_place) access_place_vec;
/* By variable and position. */
void access_sort_places(const struct access_sorter *sorter, access_place_vec *places);

#endif
