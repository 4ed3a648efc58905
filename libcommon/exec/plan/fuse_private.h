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
    /* Of a group's node: the first ones of its end, unless it is described as having others. */
    const struct node_output *outputs;
    int n_outputs;
    struct fused *fused;
    struct arena memory;
};

/* Looks at all nodes, of which none is in a group yet, and empties `fused`. False: the graph has no
 * order, which is refused elsewhere. */
bool fuse_groups_init(struct fuse_groups *groups, const struct graph *graph,
                      const struct fuse_options *options, struct fused *fused);
void fuse_groups_release(struct fuse_groups *groups);

/* Whether the node is of one output, in a type in which several ops round as one by one, of known
 * shape, and no longer to be there matters to nobody but who takes its output. */
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

/* Whether `name` is that of a mark: an order, a place with others, a gradient. */
static inline bool fuse_is_mark(const char *name)
{
    return name[0] == '_';
}

/* The new graph: of each group the node that `describe` says the rest of (op, inputs, attributes,
 * in memory of the new graph), and all other nodes. It waits for what any node of the group waited
 * for, and what waited for one of them waits for it. */
void fuse_rewrite(struct fuse_groups *groups,
                  void (*describe)(struct fuse_groups *groups, const struct node *end,
                                   struct node_spec *spec));

static inline const struct node_output *fuse_source(const struct fuse_groups *groups,
                                                    struct edge edge)
{
    return &graph_node(groups->graph, edge.node)->outputs[edge.slot];
}

#endif
