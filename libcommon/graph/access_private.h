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

#define ACCESS_BATCH 64

struct access_level {
    const struct access_graph *graph;
    int frame, n; /* n: vertices */
    int *vertex;  /* by node; -1: it is not in the frame */
    int *node;    /* by vertex: one of its nodes */
    access_edge_vec edges;
    int *first; /* by vertex, and one more: of the edges from there */
    int *order; /* vertices by paths; those on a cycle, if there is one, come last */
    int *place; /* by vertex: where it is in `order` */
    struct arena memory;
};

void access_level_init(struct access_level *level, const struct access_graph *graph, int frame);
void access_level_release(struct access_level *level);
/* By vertex, of those that `order` has up to the last of `to`: bit i is set if a path leads there
 * from from[i], i < n <= ACCESS_BATCH, which is another vertex. False: none leads to any of `to`,
 * and nothing was set. */
bool access_level_reach(const struct access_level *level, const int *from, int n, int last,
                        uint64_t *reached);
/* Returns whether two nodes never both run in one iteration of the frame; and under what a node
 * runs. */
bool access_level_excludes(const struct access_level *level, int a, int b);
int access_level_condition(const struct access_level *level, int node);

/* ---- families: the accesses of one variable in a level ---- */

/* Reads of one family whose writes are known alike: all of it, unless conditions exclude each
 * other; then those under one condition, and the writes that may run when they do. */
struct access_kind {
    int first_read, n_reads; /* in `reads`, by how many writes they follow */
    int *bucket; /* by write of the family: the first group that follows it; -1: excluded */
    int first_group, n_groups;
};

/* Reads of a kind that follow the same writes. Those come before `point`, all others after `last`.
 * A node that reads at its own vertex comes before `end`, unless it writes the variable, too: it
 * comes between `end` and `last`. */
struct access_group {
    int point, end, last;
    int changes;    /* that vertex; -1: there is none */
    int prev, next; /* when all is in order: the writes around the point, of `writes`; -1 */
};

struct access_family {
    int first_read, n_reads, first_write, n_writes; /* n_writes > 0 */
    bool is_placed;    /* the places of its writes are known, which come in that order */
    bool has_branches; /* conditions exclude some of it; not asked of a placed one */
    int first_kind, n_kinds;
};

struct access_rule {
    struct access_level level;
    int n;               /* vertices: those of the level, then of groups */
    int *place;          /* by access: struct access_place of the frame; 0: not known */
    int *reads, *writes; /* accesses, family after family */
    int *count;          /* by read: of how many writes a path leads there */
    int *group;          /* by read */
    VEC(struct access_family) families;
    VEC(struct access_kind) kinds;
    VEC(struct access_group) groups;
    access_edge_vec edges; /* of the rule, between vertices */
    int *position;         /* by vertex, in an order of all of that; -1: on a cycle, or after one */
    struct arena memory;
};

/* Finds families whose order is open, groups and edges. False: there is nothing to be ordered in
 * the frame. Where paths contradict the rule, *code is set with the error. To be released in any
 * case. */
bool access_rule_init(struct access_rule *rule, const struct access_graph *graph, int frame,
                      int *code, struct error *err);
void access_rule_release(struct access_rule *rule);

/* access_family.c: finds and sorts the accesses; n_reads gets how many reads there are. */
void access_find_families(struct access_rule *rule, bool all, int *n_reads);
/* access_count.c: counts; then groups. */
void access_count(struct access_rule *rule, int n_reads);
int access_find_groups(struct access_rule *rule, struct error *err);

static inline const struct access *access_read_at(const struct access_rule *rule, int read)
{
    return &rule->level.graph->accesses.items[rule->reads[read]];
}

static inline const struct access *access_write_at(const struct access_rule *rule, int write)
{
    return &rule->level.graph->accesses.items[rule->writes[write]];
}

/* Returns whether the read has a point of its own, apart from its vertex. */
static inline bool access_may_copy(const struct access_rule *rule, const struct access *read)
{
    const struct access_graph *graph = rule->level.graph;
    return read->copies && !rule->level.frame && !(graph->frame && graph->frame[read->node]);
}

/* Edges by producer: those of vertex v are to[first[v]] to to[first[v + 1]]; freed by the caller.
 */
struct access_successors {
    int *first, *to;
};
struct access_successors access_successors(const struct access_rule *rule,
                                           const access_edge_vec *more);

/* access_sort.c: one order of all edges, in which writes come last and by name: sets positions.
 * ERR_DATA, naming the nodes of a cycle. */
int access_sort(struct access_rule *rule, struct error *err);

/* access_component.c: by vertex; strongly connected ones have the same. Freed by the caller. */
int *access_find_components(const struct access_rule *rule, const access_edge_vec *more);

#endif
