/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that are cut along axes: the places of each part, the value made of its parts, and
 * variables in parts. For passes.
 */
#ifndef TF_PASS_CUT_H
#define TF_PASS_CUT_H

#include "graph/build.h"
#include "graph/marks.h"
#include "pass/rewrite.h"

/* Of n[0] * n[1] parts, part k is number k / n[1] along the first axis, k % n[1] along the other.
 * A value that is whole along one of the two has equal parts along it. */
struct partition {
    bool is_cut;
    bool is_floor; /* of 6 in 4: 1 2 1 2, else 2 2 1 1 */
    int axis[2];   /* -1: it is whole along this one */
    int n[2];
    int64_t size[2];
};

/* Places [from, to) along the two axes. */
struct area {
    int64_t from[2], to[2];
};

struct area cut_area(const struct partition *cut, int k);
struct shape cut_shape(const struct partition *cut, const struct shape *whole, int k);
bool cut_equal(const struct partition *a, const struct partition *b);

struct area area_meet(struct area a, struct area b);
struct area area_within(struct area a, struct area of); /* places of `of` counted from its first */
bool area_is_empty(struct area a);
bool area_equal(struct area a, struct area b);

/* Add nodes: a slice of the area; the concatenation of parts; the whole of a partition's parts, in
 * which EDGE_NONE leaves a part out. */
struct edge cut_slice(struct build *b, struct edge whole, const struct partition *cut,
                      struct area area);
struct edge cut_concat(struct build *b, int axis, const struct edge *parts, int n);
struct edge cut_join(struct build *b, const struct partition *cut, const struct edge *parts);
/* Adds the logical and of n edges. */
struct edge cut_ask(struct build *b, const struct edge *parts, int n);

/* Returns whether a node is a variable that may be cut: its shape is known, and workers share it.
 */
bool cut_is_possible(const struct node *node);

/* The names of n parts. */
const char **cut_names(struct rewrite *r, const struct node *node, int n);
/* The parts of a variable, under those names, on those devices (NULL: its own), with attributes
 * that say what they are parts of. */
struct edge *cut_variable(struct rewrite *r, const struct node *node, const struct partition *cut,
                          const char *const *names, const char *const *devices);

#endif
