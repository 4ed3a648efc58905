/* SPDX-License-Identifier: Apache-2.0
 *
 * What passes that make one node of several have in common: groups of nodes, each of which ends in
 * the node whose name the new one has.
 */
#ifndef TF_EXEC_FUSE_PRIVATE_H
#define TF_EXEC_FUSE_PRIVATE_H

#include "exec/plan/fuse.h"

typedef VEC(struct edge) fuse_edges;

struct fuse_groups {
    const struct graph *graph;
    const struct fuse_options *options;
    struct graph *to;          /* while it is rewritten */
    int *order;                /* topological */
    int *uses;                 /* by node: who takes an output, or waits for it */
    const struct node **taker; /* by node: the last of those who take an output */
    bool *bound;               /* by node: it waits for others, has marks, or is named by some */
    bool *named;               /* by node: it is named by some */
    int *end;                  /* by node: the end of the group that it is part of; -1: of none */
    /* The outputs of a group's node: the first ones of its end, unless it is described as having
     * others. */
    const struct node_output *outputs;
    int n_outputs;
    int *node_of; /* of `to`, by node; -1: it is part of another */
    int n_gone;   /* nodes that are part of others, or are made another way */
    struct arena memory;
    void *own; /* of the pass */
};

/* Returns whether the node is of one output, in a type in which several ops round as one by one, of
 * known shape, and no longer to be there matters to nobody but who takes its output. */
bool fuse_can_go(const struct fuse_groups *groups, const struct node *node);

/* A variable that it reads would be read when the end runs. */
bool fuse_reads_variables(const struct fuse_groups *groups, const struct node *node);
bool fuse_same_place(const struct node *a, const struct node *b);

/* Attributes that both have, as where the channels are, say the same. */
bool fuse_attrs_agree(const struct node *a, const struct node *b);

/* Gives `spec` the node's attributes and n more, in the new graph's memory. */
void fuse_set_attrs(struct fuse_groups *groups, const struct node *node, const struct attr *more,
                    int n, struct node_spec *spec);

/* Gives `spec` copies of the inputs, and releases the vector. */
void fuse_take_inputs(struct fuse_groups *groups, fuse_edges *inputs, struct node_spec *spec);

/* Returns whether the node makes its one value for nobody but `taker`, where that is, and as soon
 * as it can. */
bool fuse_is_own(const struct fuse_groups *groups, const struct node *node,
                 const struct node *taker);

/* What an update is given as its gradient, seen through Identities that are its own. */
struct edge fuse_gradient(const struct fuse_groups *groups, const struct node *update);

/* Makes what leads from that edge to the update part of the group of `end`. */
void fuse_claim_gradient(struct fuse_groups *groups, const struct node *update, struct edge from,
                         int end);

/* Returns whether `name` is that of a mark: an order, a place with others, a gradient. */
static inline bool fuse_is_mark(const char *name)
{
    return name[0] == '_';
}

static inline const struct node_output *fuse_source(const struct fuse_groups *groups,
                                                    struct edge edge)
{
    return &graph_node(groups->graph, edge.node)->outputs[edge.slot];
}

/* The row of the node's kernel; NULL: it has none. */
static inline const struct kernel_row *fuse_row(const struct fuse_groups *groups,
                                                const struct node *node)
{
    return kernel_find(groups->options->kernels, node, groups->options->device);
}

/* The op that a row names, if the device has a kernel of it; else NULL. */
static inline const char *fuse_known_op(const struct fuse_groups *groups, const char *op)
{
    return op && kernel_exists(groups->options->kernels, op, groups->options->device) ? op : NULL;
}

/* The passes: how each finds groups, and describes the node of one (op, inputs, attributes, in
 * memory of the new graph). That waits for what any node of the group waited for, and what waited
 * for one of them waits for it. */
#define FUSE_PASS(pass)                                                                            \
    void fuse_##pass##_find(struct fuse_groups *groups);                                           \
    void fuse_##pass##_describe(struct fuse_groups *groups, const struct node *end,                \
                                struct node_spec *spec)

/* fuse_pools.c: MaxPool leaves where the largest value of each window is, a byte each, and its
 * gradient takes that in place of image and result; a ReluGrad behind it is folded in. */
FUSE_PASS(pools);

/* fuse_sums.c: a sum of matrix products, and perhaps of one tensor, becomes the op that the
 * products' row names: one product over their inner axes side by side. A product that a variable is
 * updated by becomes part of the update. Not where results must be exact. */
FUSE_PASS(sums);

/* fuse_products.c: a product or convolution and the bias and activation behind it, of which each is
 * for nobody else, become the op that its kernel's row names (exec/device/kernel.h): one pass over
 * the result in place of one for each. */
FUSE_PASS(products);

/* fuse_chains.c: element-wise ops of which each takes what the one before has made for nobody else
 * become one FusedElementwise: one pass over memory, in blocks that stay in the first cache. */
FUSE_PASS(chains);

/* fuse_updates.c: updates of variables that one rule makes with the same scalars become the op that
 * their kernel's row names: one piece of work in place of one for each variable. */
FUSE_PASS(updates);

#endif
