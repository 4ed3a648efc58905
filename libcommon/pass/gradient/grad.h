/* SPDX-License-Identifier: Apache-2.0
 *
 * Symbolic gradients: nodes are appended to the graph, nothing is executed. The algorithm is that
 * of the 2015 white paper, section 4.1: extend backward from y along the paths that reach some x,
 * and add gradients where paths meet; control flow as in section 4.4.
 */
#ifndef TF_PASS_GRAD_H
#define TF_PASS_GRAD_H

#include "graph/build.h"

/* A gradient: dense, or of some rows of a table, such as a Gather's: values [k, ...] for the rows
 * indices [k]. Without indices (EDGE_NONE) it is dense; without values there is none. */
struct gradient {
    struct edge values;
    struct edge indices;
};

/* The argument of an op's gradient function, which sets in[i] for each input that has a gradient,
 * and in_indices[i] if that is of some rows. out[k] is the gradient of output k, EDGE_NONE if no
 * gradient flows back through it; at least one exists. A failure is left in b.err. */
struct grad {
    struct build b;          /* new nodes are scoped "gradients/NAME_grad" */
    const struct node *node; /* the forward node */
    const struct edge *out;
    struct edge *in;
    struct edge *in_indices;
};

static inline struct edge grad_input(const struct grad *g, int i)
{
    return g->node->inputs[i];
}

static inline struct edge grad_output(const struct grad *g, int k)
{
    return (struct edge){g->node->id, k};
}

/* Adds an op with those of its attributes that the node has. */
struct edge grad_op(struct grad *g, const char *op, const struct edge *inputs, int n);

/* Returns out[k], or zeros shaped like the output. */
struct edge grad_out_or_zeros(struct grad *g, int k);

/* Sums `gradient` over the axes that broadcasting inputs i and `other` added to input i, and
 * reshapes it to input i's shape (static shapes if known, else BroadcastGradientArgs). */
struct edge grad_unbroadcast(struct grad *g, struct edge gradient, int i, int other);

struct gradients_options {
    bool colocate;       /* each gradient op with its forward op */
    bool allow_missing;  /* an x without a path to y gets EDGE_NONE instead of an error */
    const char *scope;   /* NULL: "gradients" */
    const char *device;  /* NULL, or of nodes without a forward op to be colocated with */
    const char *group;   /* NULL, or likewise, as "loc:@w" */
    const int *controls; /* nodes after which all new nodes run, except constants */
    int n_controls;
    const char *file; /* position of the new nodes in the script */
    int line;
};

/* Sets result[n_xs] to d(sum of ys)/dx for each x. grad_ys may be NULL (ones). ERR_DATA naming the
 * node where a path ends: no gradient is registered, or no path leads from x to y. */
int gradients_add(struct graph *graph, const struct edge *ys, const struct edge *grad_ys, int n_ys,
                  const struct edge *xs, int n_xs, const struct gradients_options *options,
                  struct gradient *result, struct error *err);

/* Converts a row-wise gradient to a dense one like x; returns a dense one as it is. */
struct edge gradient_dense(struct build *b, const struct gradient *gradient, struct edge x);

#endif
