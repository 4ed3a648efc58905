/* SPDX-License-Identifier: Apache-2.0
 *
 * Directed graphs of numbered vertices: what follows a vertex, an order of all, a cycle.
 */
#ifndef TF_GRAPH_TOPOLOGY_H
#define TF_GRAPH_TOPOLOGY_H

#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"

struct arc {
    int from, to;
};
typedef VEC(struct arc) arc_vec;

/* Arcs by their start: those of vertex v, of n, lead to to[first[v]] to to[first[v + 1]], in their
 * order in the arrays, of which the last is NULL. In the arena's memory. */
struct successors {
    int *first, *to, n;
};
struct successors successors_new(struct arena *memory, size_t n, const arc_vec *const *arrays);

/* Sets `order` to the vertices, every one after those that lead to it, ties by number (Kahn); those
 * on a cycle, or after one, come last, the largest number first. Sets `position`, by vertex, to its
 * place there; -1 for these. Returns how many others there are. */
int successors_order(const struct successors *next, int *order, int *position);

/* Sets `cycle`, with room for all vertices, to vertices without a position of which each leads to
 * the one before, and the first to the last. Returns their number. */
int successors_cycle(const struct successors *next, const int *position, int *cycle);

/* As successors_order. ERR_DATA "the graph has a cycle: a <- b <- a"; then order[0] is `a`. */
int successors_sort(const struct successors *next, const char *const *names, int *order,
                    struct error *err);

#endif
