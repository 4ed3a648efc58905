/* SPDX-License-Identifier: Apache-2.0
 *
 * What the cores of a machine take for what its tasks do, where the cluster says how many it has
 * (graph/cluster.h): tasks on one host, and on hosts within one, share them. Where it does not say,
 * each task has cores of its own and nothing here takes time.
 */
#ifndef TF_PASS_COST_CORES_H
#define TF_PASS_COST_CORES_H

#include "graph/cluster.h"
#include "pass/place/cost.h"

/* The part of a core that a CPU of the host has while all of its kind on the machine compute:
 * shards, or all others. These wait for each other, and do not compute at the same time. */
double cost_core_share(const struct cluster *cluster, int host, bool of_shards);
/* The least of the tasks 0 to n - 1 of a job; 1 without a cluster (NULL). */
double cost_least_share(const char *job, int n, const struct cluster *cluster);

/* What the tasks 0 to n - 1 of a job each send and get together: messages, or bytes of these. */
struct cost_traffic {
    const char *job;
    int n;
    double each;
    const double *by_task; /* instead of `each`; NULL: all have as much */
};

/* A way that is as long with cores of their own, of a message (latency) and of its bytes, if tasks
 * have so much traffic by it for one message, or byte, of one to one. Cores work on a part of what
 * crosses while others are on the way: with w and c for what links and cores would take by
 * themselves, bytes take sqrt(w^2 + c^2) (docs/costs.md). Messages wait for both. */
struct cost_way cost_with_cores(struct cost_way way, const struct cost_traffic *traffic,
                                int n_traffic, const struct cluster *cluster);

#endif
