/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients, symbolically: nodes are appended to the graph, nothing is executed.
 * The algorithm is that of the 2015 white paper, section 4.1: extended backward from y along the
 * paths that reach some x, summing where paths meet; control flow as in section 4.4.
 */
#ifndef TF_PASS_GRAD_H
#define TF_PASS_GRAD_H

#include "graph/build.h"

/* A gradient: dense, or rows of a table (what a Gather sends back): values [k, ...] that belong to
 * rows indices [k]; EDGE_NONE as indices means dense, as values means none. */
struct gradient {
    struct edge values;
    struct edge indices;
};

/* What an op's gradient function sees. It sets in[i] (or calls grad_set_rows) for each input that
 * has a gradient. out[k] is the gradient of output k, EDGE_NONE if nothing flows back through it;
 * at least one exists. That it fails is b's to say (grad_finish). */
struct grad {
    struct build b;          /* new nodes are scoped "gradients/NAME_grad" */
    const struct node *node; /* the forward node */
    const struct edge *out;
    struct edge *in;
    struct edge *in_indices; /* set by grad_set_rows */
};

static inline struct edge grad_input(const struct grad *g, int i)
{
    return g->node->inputs[i];
}

static inline struct edge grad_output(const struct grad *g, int k)
{
    return (struct edge){g->node->id, k};
}

/* 0, or what the first node that could not be made has left in b.err. */
static inline int grad_finish(const struct grad *g)
{
    return g->b.failed ? g->b.err->code : 0;
}

/* out[k], or zeros like the output. */
struct edge grad_out_or_zeros(struct grad *g, int k);

/* Sums `gradient` over the axes that broadcasting of inputs i and `other` added to input i, and
 * reshapes it to input i's shape (static shapes when known, else BroadcastGradientArgs). */
struct edge grad_unbroadcast(struct grad *g, struct edge gradient, int i, int other);

void grad_set_rows(struct grad *g, int i, struct edge values, struct edge indices);

struct gradients_options {
    bool colocate;       /* each gradient op with its forward op */
    bool allow_missing;  /* no path from y to an x gives EDGE_NONE instead of an error */
    const char *scope;   /* NULL: "gradients" */
    const char *device;  /* NULL, or of what has no forward op to be with */
    const char *group;   /* NULL, or likewise, as "loc:@w" */
    const int *controls; /* nodes after which all that is made runs, but for constants */
    int n_controls;
    const char *file; /* script place of the nodes made */
    int line;
};

/* d(sum of ys)/dx for each x, into result[n_xs]. grad_ys may be NULL (ones). ERR_DATA with a
 * message naming the node where a path ends: no gradient registered, or no path from x to y. */
int gradients_add(struct graph *graph, const struct edge *ys, const struct edge *grad_ys, int n_ys,
                  const struct edge *xs, int n_xs, const struct gradients_options *options,
                  struct gradient *result, struct error *err);

/* A row-wise gradient as a dense one like x; a dense one as it is. */
struct edge gradient_dense(struct build *b, const struct gradient *gradient, struct edge x);

#endif
