/* SPDX-License-Identifier: Apache-2.0
 *
 * The common part of passes that fuse several nodes into one: groups of nodes, each of which ends
 * in the node whose name the new node gets.
 */
#ifndef TF_EXEC_FUSE_PRIVATE_H
#define TF_EXEC_FUSE_PRIVATE_H

#include "exec/plan/fuse.h"

typedef VEC(struct edge) fuse_edges;

struct fuse_groups {
    const struct graph *graph;
    const struct fuse_options *options;
    struct graph *to;          /* the graph that is being written */
    int *order;                /* topological */
    int *uses;                 /* by node: how many nodes take an output or wait for it */
    const struct node **taker; /* by node: the last node that takes an output */
    bool *bound;               /* by node: it has controls or marks, or others name it */
    bool *named;               /* by node: others name it */
    int *end;                  /* by node: the end of its group; -1: it is in none */
    /* The outputs of a group's node: the first ones of its end, unless the pass describes
     * others. */
    const struct node_output *outputs;
    int n_outputs;
    int *node_of; /* of `to`, by node; -1: it is part of another node */
    int n_gone;   /* nodes that became part of others, or are made another way */
    struct arena memory;
    void *own; /* for the pass */
};

/* Returns whether the node may be fused away: it has one output, of known shape and of a type in
 * which fused ops round as separate ones do, and only its consumers would miss it. */
bool fuse_can_go(const struct fuse_groups *groups, const struct node *node);

/* Returns whether the node reads variables: fused, it would read them when the end runs. */
bool fuse_reads_variables(const struct fuse_groups *groups, const struct node *node);
bool fuse_same_place(const struct node *a, const struct node *b);

/* Returns whether attributes that both nodes have, such as the place of the channels, are equal,
 * but for marks and what has no effect. */
bool fuse_attrs_agree(const struct node *a, const struct node *b);

/* Gives `spec` the node's attributes and n more, in the new graph's memory. */
void fuse_set_attrs(struct fuse_groups *groups, const struct node *node, const struct attr *more,
                    int n, struct node_spec *spec);

/* Gives `spec` copies of the inputs, and releases the vector. */
void fuse_take_inputs(struct fuse_groups *groups, fuse_edges *inputs, struct node_spec *spec);

/* Returns whether only `taker`, on the same device, uses the node's one value, and the node waits
 * for nothing but its inputs. */
bool fuse_is_own(const struct fuse_groups *groups, const struct node *node,
                 const struct node *taker);

/* The gradient that an update takes, seen through Identities that nothing else uses. */
struct edge fuse_gradient(const struct fuse_groups *groups, const struct node *update);

/* Puts the nodes on the path from that edge to the update into the group of `end`. */
void fuse_claim_gradient(struct fuse_groups *groups, const struct node *update, struct edge from,
                         int end);

/* Returns whether `name` is that of a mark: an order, a colocation, a gradient. */
static inline bool fuse_is_mark(const char *name)
{
    return name[0] == '_';
}

/* Returns whether the node has marks. An update may be joined with others in spite of a colocation.
 */
bool fuse_has_marks(const struct node *node, bool is_update);

static inline bool fuse_is_update(const struct node *node)
{
    return node->op->def->descent.gradient > 0;
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

/* The passes: each finds groups, and describes the node of one (op, inputs, attributes, in memory
 * of the new graph). The new node waits for everything that a node of the group waited for, and
 * whatever waited for one of them waits for it. */
#define FUSE_PASS(pass)                                                                            \
    void fuse_##pass##_find(struct fuse_groups *groups);                                           \
    void fuse_##pass##_describe(struct fuse_groups *groups, const struct node *end,                \
                                struct node_spec *spec)

/* fuse_pools.c: MaxPool also outputs the position of the largest value in each window, a byte each,
 * and its gradient takes that instead of image and result; a ReluGrad behind it is folded in. */
FUSE_PASS(pools);

/* fuse_sums.c: a sum of matrix products, and perhaps of one tensor, becomes the op that the
 * products' row names: one product over their concatenated inner axes. A product that a variable is
 * updated by becomes part of the update. Not used where results must be exact. */
FUSE_PASS(sums);

/* fuse_products.c: a product or convolution and the bias and activation behind it, if nothing else
 * uses them, become the op that its kernel's row names (exec/device/kernel.h): one pass over the
 * result instead of one for each. */
FUSE_PASS(products);

/* fuse_chains.c: element-wise ops, each the only consumer of the one before, become one
 * FusedElementwise: one pass over memory, in blocks that stay in the first-level cache. */
FUSE_PASS(chains);

/* fuse_updates.c: updates of variables by one rule with the same scalars become the op that their
 * kernel's row names: one launch instead of one for each variable. */
FUSE_PASS(updates);

#endif
