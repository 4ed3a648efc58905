/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph of one loop, or of all outside of loops, in which each inner loop is one vertex; and
 * the rule of access.h as edges between these vertices and the points of reads. Private to the
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
    arc_vec edges;
    struct successors next; /* by vertex */
    int *order;             /* vertices in topological order; those on a cycle come last */
    int *place;             /* by vertex: its index in `order` */
};

/* ---- families: the accesses of one variable in a level ---- */

/* Reads of one family that may follow the same writes: all of the family, unless conditions exclude
 * some of it; then the reads under one condition, and the writes that may run when they do. */
struct access_kind {
    int first_read, n_reads; /* in `reads`, sorted by the number of writes they follow */
    int *bucket; /* by write of the family: the first group that follows it; -1: excluded */
    int first_group, n_groups;
};

/* Reads of a kind that follow the same writes. Those writes come before `point`, all others after
 * `last`. A node that reads at its own vertex comes before `end`; but if it also writes the
 * variable, it comes between `end` and `last`. */
struct access_group {
    int point, end, last;
    int changes;    /* the vertex that does so; -1: none */
    int prev, next; /* in `writes`: the point's neighbours, once ordered; -1 */
};

struct access_family {
    int first_read, n_reads, first_write, n_writes; /* n_writes > 0 */
    bool is_placed;    /* its writes have known places, and are sorted by them */
    bool has_branches; /* conditions exclude some of it; not set for a placed one */
    int first_kind, n_kinds;
};

struct access_rule {
    struct access_level level;
    int n;               /* number of vertices: those of the level, then of groups */
    int *place;          /* by access: struct access_place of the frame; 0: unknown */
    int *reads, *writes; /* accesses, family after family */
    int n_reads, n_writes;
    int *count; /* by read: how many writes have a path to it */
    int *group; /* by read */
    VEC(struct access_family) families;
    VEC(struct access_kind) kinds;
    VEC(struct access_group) groups;
    arc_vec edges; /* of the rule, between vertices */
    int *position; /* by vertex, in an order of all edges; -1: on a cycle or after one */
    struct arena memory;
};

/* Finds families whose order is open, their groups and edges. Returns false if nothing in the frame
 * needs ordering. If paths contradict the rule, sets *code and the error. The caller releases the
 * rule in every case. */
bool access_rule_init(struct access_rule *rule, const struct access_graph *graph, int frame,
                      int *code, struct error *err);
void access_rule_release(struct access_rule *rule);

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

#endif
