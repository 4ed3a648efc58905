/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: graphs placed by simulation, with cluster and costs given as texts.
 */
#ifndef TF_TESTS_LIB_PLACED_H
#define TF_TESTS_LIB_PLACED_H

#include <string.h>

#include "lib/unit.h"

#include "graph/text.h"
#include "ops/ops.h"
#include "pass/place/place.h"

struct placed_graph {
    struct graph *graph;
    struct cluster cluster;
    struct placement placement;
    struct costs costs;
    struct place_costs model;
    struct place_options options;
    struct place_result result;
    struct error err;
};

static inline void open_cluster(struct placed_graph *p, const char *cluster, const char *costs)
{
    memset(p, 0, sizeof *p);
    if (cluster_parse(&p->cluster, cluster, "c", &p->err) ||
        placement_add_cluster(&p->placement, &p->cluster, &p->err) ||
        costs_parse(&p->costs, costs, "costs", &p->err))
        fail_msg("%s", p->err.text);
    placement_take_facts(&p->placement, &p->costs);
    p->model = (struct place_costs){.measured = &p->costs, .assume = 32};
    p->options = (struct place_options){.placement = &p->placement,
                                        .kernels = ops_kernels(),
                                        .model = &p->model,
                                        .result = &p->result};
}

static inline void open_graph(struct placed_graph *p, const char *cluster, const char *costs,
                              const char *text)
{
    open_cluster(p, cluster, costs);
    if (graph_parse_text(text, strlen(text), "m", ops_registry(), &p->graph, &p->err))
        fail_msg("%s", p->err.text);
}

static inline void finish(struct placed_graph *p)
{
    placement_release(&p->placement);
    cluster_release(&p->cluster);
    costs_release(&p->costs);
    graph_free(p->graph);
}

static inline void place(struct placed_graph *p)
{
    if (place_graph(p->graph, &p->options, &p->err))
        fail_msg("%s", p->err.text);
}

static inline const char *where(const struct placed_graph *p, const char *name)
{
    return graph_find(p->graph, name)->assigned;
}

#endif
