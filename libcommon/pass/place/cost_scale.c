/* SPDX-License-Identifier: Apache-2.0
 *
 * Estimates of how long what an op declares takes. Rates are those of one ordinary machine: an
 * estimate is for comparing devices and links, and what was measured takes its place, or scales it.
 */
#include "pass/place/cost.h"

#include <string.h>

#include "base/memory.h"
#include "graph/frames.h"

struct cost_rates cost_rates_of(const char *type, const struct device_facts *facts)
{
    struct cost_rates rates = {.operations = 10e12, .bandwidth = 500e9, .overhead = 5000};
    if (!strcmp(type, "CPU"))
        rates = (struct cost_rates){.operations = 40e9, .bandwidth = 8e9, .overhead = 500};
    if (facts && facts->operations > 0)
        rates.operations = facts->operations;
    if (facts && facts->bandwidth > 0)
        rates.bandwidth = facts->bandwidth;
    return rates;
}

bool cost_is_view(const struct cost_query *query)
{
    struct op_cost cost = cost_of(query);
    return !cost.is_free && !cost.bytes;
}

double cost_estimate_ns(const struct cost_query *query, const struct cost_rates *rates)
{
    struct op_cost cost = cost_of(query);
    double compute = cost.operations / rates->operations, move = cost.bytes / rates->bandwidth;
    return cost.is_free ? 0 : rates->overhead + 1e9 * (compute > move ? compute : move);
}

/* ---- what was measured ---- */

#define LOOP_STEPS 10.0 /* iterations of a loop, when they were not measured */

int cost_weights(const struct graph *graph, double *weights, struct error *err)
{
    struct frames *frames;
    int code = frames_new(graph, &frames, err);
    for (size_t i = 0; !code && i < graph->nodes.n; i++) {
        weights[i] = 1;
        for (int d = frames->frames.items[frames->frame[i]].depth; d > 0; d--)
            weights[i] *= LOOP_STEPS;
    }
    if (!code)
        frames_free(frames);
    return code;
}

static double find_scale(const struct cost_sample *sample, const char *type,
                         const struct cost_rates *rates)
{
    double measured = 0, estimated = 0, ns;
    for (size_t i = 0; i < sample->graph->nodes.n; i++) {
        const struct cost_query query = {graph_node(sample->graph, (int)i), sample->graph,
                                         sample->assume};
        if (!costs_find_node(sample->measured, query.node, type, sample->has_untyped, &ns))
            continue;
        measured += ns;
        estimated += sample->weights[i] * cost_estimate_ns(&query, rates);
    }
    return measured > 0 && estimated > 0 ? measured / estimated : 1;
}

struct cost_rates cost_scaled_rates(const struct cost_sample *sample, const char *type,
                                    const struct device_facts *facts)
{
    struct cost_rates rates = cost_rates_of(type, facts);
    bool has_operations = facts && facts->operations > 0;
    bool has_bandwidth = facts && facts->bandwidth > 0;
    double scale = find_scale(sample, type, &rates);
    rates.operations /= has_operations ? 1 : scale;
    rates.bandwidth /= has_bandwidth ? 1 : scale;
    rates.overhead *= has_operations || has_bandwidth ? 1 : scale;
    return rates;
}

void cost_scale_cores(struct cluster *cluster, const struct graph *graph,
                      const struct costs *measured, int64_t assume)
{
    double *weights = mem_array(graph->nodes.n + 1, sizeof *weights);
    bool only_cpus = true;
    for (size_t i = 0; i < cluster->devices.n; i++)
        only_cpus &= !strcmp(cluster->devices.items[i].type, "CPU");
    const struct cost_sample sample = {graph, measured, weights, assume, only_cpus};
    const struct cost_rates rates = cost_rates_of("CPU", NULL);
    struct error ignored = ERROR_INIT; /* whoever uses the graph finds what is wrong with it */
    if (!cost_weights(graph, weights, &ignored))
        cluster->core_time = find_scale(&sample, "CPU", &rates);
    mem_free(weights);
}
