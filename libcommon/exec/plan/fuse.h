/* SPDX-License-Identifier: Apache-2.0
 *
 * Device passes: rewrites of a graph for one type of device, which make of several ops one that the
 * device computes in one go. They change no bit, but that `sums` adds in another order. Plans apply
 * them to their own copy of a graph, when it has what a request needs and shapes are known as far
 * as they can be; `tf-opt --for` shows what becomes of a graph.
 */
#ifndef TF_EXEC_FUSE_H
#define TF_EXEC_FUSE_H

#include "base/vec.h"
#include "exec/device/kernel.h"

struct fuse_options {
    const struct kernel_table *kernels;
    const char *device;      /* its type: "CPU" */
    const struct edge *keep; /* values that somebody wants by their names */
    int n_keep;
    unsigned without; /* passes that are left out: 1 << number */
};

typedef VEC(struct graph *) graph_vec;

struct fusion {
    struct graph *graph; /* borrows names and attributes of the old one; NULL: nothing was found */
    int *node_of;        /* by node of the old graph; -1: it is part of another */
    int n_gone;          /* nodes that are part of others, or are made another way */
    graph_vec before;    /* of fuse_graph: what `graph` borrows from besides */
};

struct fuse_groups;

struct device_pass {
    const char *name;
    const char *verb; /* what became of the nodes that went; NULL: it rewrites no graph, but what a
                       * plan makes of it (plan_views.c), as the next two */
    void (*find)(struct fuse_groups *groups);
    void (*describe)(struct fuse_groups *groups, const struct node *end, struct node_spec *spec);
};

/* In the order in which they run. */
#define N_DEVICE_PASSES 6
#define DEVICE_PASS_SUMS 2
#define DEVICE_PASS_VIEWS 5
extern const struct device_pass device_passes[N_DEVICE_PASSES];
#define DEVICE_PASSES_ALL ((1u << N_DEVICE_PASSES) - 1)

/* Its number; -1: there is none of the name. */
int device_pass_find(const char *name);

/* All of them, without the names that a graph has besides its nodes'; n_gone may be NULL: by pass.
 * The given graph outlives the result. */
void fuse_graph(const struct graph *graph, const struct fuse_options *options, struct fusion *fused,
                int n_gone[N_DEVICE_PASSES]);
void fusion_release(struct fusion *fused);

/* Where an edge of the old graph comes from in the new one, whose node it must have. */
static inline struct edge fusion_edge(const struct fusion *fused, struct edge edge)
{
    return (struct edge){fused->node_of[edge.node], edge.slot};
}

/* The same of a graph with all its names: what entries and aliases stand for is kept, and what went
 * is said to have been removed. */
int fuse_named_graph(const struct graph *graph, const struct fuse_options *options,
                     struct fusion *fused, int n_gone[N_DEVICE_PASSES], struct error *err);

#endif
