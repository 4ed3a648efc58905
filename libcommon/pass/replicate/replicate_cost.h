/* SPDX-License-Identifier: Apache-2.0
 *
 * What the model of costs counts of a graph that is replicated: bytes that cross, and what those
 * who exchange them compute. Private to libcommon/pass.
 */
#ifndef TF_PASS_REPLICATE_COST_H
#define TF_PASS_REPLICATE_COST_H

#include "pass/replicate/replicate_private.h"

double replicate_elements(const struct replicator *r, struct edge edge);
/* As it crosses. */
double replicate_bytes(const struct replicator *r, struct edge edge);
int replicate_shards(const struct replicator *r); /* how many there are */

/* How fast a worker's CPU is, by what was measured of the graph. */
int replicate_find_rates(struct replicator *r);
/* On a core of its own. */
double replicate_node_ns(const struct replicator *r, const struct node *node);
/* How long it takes that all workers compute at once what takes each so long on a core of its own;
 * and that shards do, each its part. */
double replicate_workers_ns(const struct replicator *r, double ns);
double replicate_shards_ns(const struct replicator *r, double ns);
/* Rows, or a code, of so many bytes, which each of n workers has for all others. */
struct replicate_way replicate_gather_way(const struct replicator *r, int n, struct cost_way way,
                                          double bytes);

#endif
