/* SPDX-License-Identifier: Apache-2.0
 *
 * Aggregators: a kind of resource stored beside variables. An aggregator keeps the values that
 * workers have pushed, by worker, incarnation and sequence number, until an update takes them or
 * they are given up. A clock (resource/clock.h) decides which pushes make an update.
 *
 * Thread-safe.
 */
#ifndef TF_RESOURCE_AGGREGATOR_H
#define TF_RESOURCE_AGGREGATOR_H

#include "exec/state/resource.h"
#include "resource/push.h"

struct aggregator;
extern const struct resource_kind aggregator_kind;

/* Stages tensors, sharing their buffers. A push with the same id is replaced. */
void aggregator_push(struct aggregator *aggregator, const struct push_id *id,
                     const struct tensor *values, int n);

/* A push taken from the aggregator; the caller releases it. */
struct staged_push {
    struct tensor *values;
    int n;
};
void staged_release(struct staged_push *staged);

/* Takes the pushes of a round, in order; discards those given up and all that the round makes
 * obsolete: pushes of its workers up to the same sequence number. ERR_DATA naming a push that is
 * missing or does not have `n_values` values; the aggregator is then unchanged. */
int aggregator_take(struct aggregator *aggregator, struct push_list members,
                    struct push_list dropped, int n_values, struct staged_push *staged,
                    struct error *err);

#endif
