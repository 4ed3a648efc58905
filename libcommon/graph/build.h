/* SPDX-License-Identifier: Apache-2.0
 *
 * Building nodes concisely: for gradients, passes and tests. Once `err` is set every call is a
 * no-op and returns EDGE_NONE, so that a gradient function reads like its formula and checks once
 * at the end.
 */
#ifndef TF_GRAPH_BUILD_H
#define TF_GRAPH_BUILD_H

#include "graph/graph.h"

struct build {
    struct graph *graph;
    const char *scope;  /* prefix of new names, "" for none; "a/b" */
    const char *device; /* of new nodes */
    const char *file;   /* script place given to new nodes */
    int line;
    const char *colocate; /* "_class" group of new nodes ("loc:@w"), or NULL */
    const int *controls;  /* given to every new node */
    int n_controls;
    struct error *err;
};

/* Adds a node named after its op within the scope; returns its output 0. `attrs` may be NULL. */
struct edge build_op(struct build *b, const char *op, const struct edge *inputs, int n_inputs,
                     const struct attr *attrs, int n_attrs);
struct edge build_unary(struct build *b, const char *op, struct edge x);
struct edge build_binary(struct build *b, const char *op, struct edge x, struct edge y);

/* x, after those nodes. */
struct edge build_after(struct build *b, struct edge x, const int *controls, int n);
struct edge build_cast(struct build *b, struct edge x, enum dtype type); /* x if of the type */

struct edge build_const(struct build *b, const struct tensor *value);
struct edge build_scalar(struct build *b, enum dtype type, double value);
struct edge build_scalar_like(struct build *b, struct edge x, double value); /* of x's type */
struct edge build_ints(struct build *b, const int64_t *values, int n);       /* int32 vector */

static inline struct edge build_slot(struct edge first, int slot) /* another output of the node */
{
    return (struct edge){first.node, slot};
}

enum dtype build_type(const struct build *b, struct edge x);
const struct shape *build_shape(const struct build *b, struct edge x);

#endif
