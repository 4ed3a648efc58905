/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of device passes: one of them alone, on a graph of the CPU.
 */
#ifndef TF_TESTS_LIB_FUSED_H
#define TF_TESTS_LIB_FUSED_H

#include "exec/plan/fuse.h"
#include "lib/session.h"

/* Runs that pass, with the values `name` and, unless it is NULL, `other` kept. Returns the
 * resulting graph: the given one if nothing was found. */
static inline const struct graph *fuse_by_pass(const char *pass, const struct graph *graph,
                                               const char *name, const char *other,
                                               struct fusion *fused)
{
    struct edge keep[2] = {{graph_find(graph, name)->id, 0}};
    if (other)
        keep[1] = (struct edge){graph_find(graph, other)->id, 0};
    struct fuse_options options = {.kernels = ops_kernels(),
                                   .device = "CPU",
                                   .keep = keep,
                                   .n_keep = other ? 2 : 1,
                                   .without = DEVICE_PASSES_ALL & ~(1u << device_pass_find(pass))};
    fuse_graph(graph, &options, fused, NULL);
    return fused->graph ? fused->graph : graph;
}

#endif
