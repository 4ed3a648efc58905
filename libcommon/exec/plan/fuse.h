/* SPDX-License-Identifier: Apache-2.0
 *
 * Device passes: rewrites of a graph for one type of device, which replace several ops with one
 * that the device computes at once. They change no bit, except that `sums` adds in another order. A
 * plan applies them to its own copy of the graph, pruned and with shapes inferred; `tf-opt --for`
 * shows what becomes of a graph.
 */
#ifndef TF_EXEC_FUSE_H
#define TF_EXEC_FUSE_H

#include "base/vec.h"
#include "exec/device/kernel.h"

struct fuse_options {
    const struct kernel_table *kernels;
    const char *device;      /* its type: "CPU" */
    const struct edge *keep; /* further values that must keep their names */
    int n_keep;
    unsigned without; /* passes to leave out: 1 << number */
};

typedef VEC(struct graph *) graph_vec;

struct fusion {
    struct graph *graph; /* borrows names and attributes of the old one; NULL: nothing was found */
    int *node_of;        /* by node of the old graph; -1: it is part of another node */
    int n_gone;          /* nodes that became part of others, or are made another way */
    graph_vec graphs;    /* all that were made: each borrows from those before it */
};

struct fuse_groups;

struct device_pass {
    const char *name;
    const char *verb; /* what became of the removed nodes. NULL: the pass rewrites no graph, but a
                       * plan's items (plan_views.c); the next two are NULL, too */
    void (*find)(struct fuse_groups *groups);
    void (*describe)(struct fuse_groups *groups, const struct node *end, struct node_spec *spec);
};

/* In the order in which they run. */
#define N_DEVICE_PASSES 6
#define DEVICE_PASS_SUMS 2
#define DEVICE_PASS_VIEWS 5
extern const struct device_pass device_passes[N_DEVICE_PASSES];
#define DEVICE_PASSES_ALL ((1u << N_DEVICE_PASSES) - 1)

/* Its number; -1: no pass has the name. */
int device_pass_find(const char *name);

/* Runs all passes. The values of entries and aliases are kept. n_gone, by pass, may be NULL. The
 * given graph must outlive the result. */
void fuse_graph(const struct graph *graph, const struct fuse_options *options, struct fusion *fused,
                int n_gone[N_DEVICE_PASSES]);
/* For a new graph that is written: takes over the history of the given one, and records the names
 * of nodes that are gone as removed. */
void fusion_add_history(const struct fusion *fused, const struct graph *graph);
void fusion_release(struct fusion *fused);

/* The edge of the new graph that an edge of the old one became; its node must still exist. */
static inline struct edge fusion_edge(const struct fusion *fused, struct edge edge)
{
    return (struct edge){fused->node_of[edge.node], edge.slot};
}

#endif
