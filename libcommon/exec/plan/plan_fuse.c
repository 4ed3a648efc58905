/* SPDX-License-Identifier: Apache-2.0
 *
 * The device's passes over a plan's own graph. Who looks at each op's result, or runs items one by
 * one, gets them as they are.
 */
#include "base/memory.h"
#include "exec/plan/fuse.h"
#include "exec/plan/plan_steps.h"

/* What was before is kept: it has the names and attributes. */
static void take(struct plan *plan, struct fused *fused, struct edge *fetch_edges)
{
    for (int i = 0; i < plan->n_fetches; i++)
        fetch_edges[i] = fused_edge(fused, fetch_edges[i]);
    for (int i = 0; i < plan->n_feeds; i++)
        if (plan->feed_nodes[i] >= 0)
            plan->feed_nodes[i] = fused->node_of[plan->feed_nodes[i]];
    vec_push(&fused->before, plan->graph);
    plan->graph = fused->graph;
    plan->wholes = fused->before;
    fused->graph = NULL;
    fused->before = (graph_vec)VEC_INIT;
}

void plan_fuse(struct plan *plan, struct edge *fetch_edges)
{
    struct fuse_options options = {.kernels = plan->options.kernels,
                                   .device = plan->options.device->type,
                                   .keep = fetch_edges,
                                   .n_keep = plan->n_fetches,
                                   .without = plan->options.without};
    struct fused fused;
    if (plan->options.cut == CUT_ITEMS || plan->options.check_numerics)
        return;
    options.without |= (unsigned)plan->options.device->exact << DEVICE_PASS_SUMS;
    fuse_graph(plan->graph, &options, &fused, NULL);
    if (fused.graph)
        take(plan, &fused, fetch_edges);
    fused_release(&fused);
}
