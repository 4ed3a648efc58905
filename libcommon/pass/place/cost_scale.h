/* SPDX-License-Identifier: Apache-2.0
 *
 * What measured times of some nodes say of all that was not measured: it takes as much longer than
 * its estimate as these together took longer than theirs.
 */
#ifndef TF_PASS_COST_SCALE_H
#define TF_PASS_COST_SCALE_H

#include "pass/place/cost.h"

/* How often each node runs in a step, as far as the graph tells: once, in a loop ten times, in a
 * loop within a loop a hundred times. */
int cost_weights(const struct graph *graph, double *weights, struct error *err);

/* A graph, and what was measured of it. */
struct cost_sample {
    const struct graph *graph;
    const struct costs *measured; /* NULL: nothing */
    const double *weights;        /* by node */
    int64_t assume;
    bool has_untyped; /* times without a type are of devices of the type that is asked for, too */
};

/* The rates of a type of device; what its facts (NULL: there are none) say stays as it is. */
struct cost_rates cost_scaled_rates(const struct cost_sample *sample, const char *type,
                                    const struct device_facts *facts);

/* Sets by how much the cores of a cluster's hosts take longer for exchanges. Times without a type
 * count where all of the cluster's devices are CPUs. */
void cost_scale_cores(struct cluster *cluster, const struct graph *graph,
                      const struct costs *measured, int64_t assume);

#endif
