/* SPDX-License-Identifier: Apache-2.0
 *
 * Aggregators: a kind of resource that lies beside variables. An aggregator keeps the values that
 * workers pushed, by worker, incarnation and sequence number, until they are taken for an update or
 * given up. Which pushes make an update is decided by a clock (resource/clock.h).
 *
 * Thread-safe.
 */
#ifndef TF_RESOURCE_AGGREGATOR_H
#define TF_RESOURCE_AGGREGATOR_H

#include "exec/state/resource.h"
#include "resource/push.h"

struct aggregator;
extern const struct resource_kind aggregator_kind;

/* Stages counted tensors, which it shares. A push of that id that is there already is replaced. */
void aggregator_push(struct aggregator *aggregator, const struct push_id *id,
                     const struct tensor *values, int n);

/* A push that was taken; the caller releases it. */
struct staged_push {
    struct tensor *values;
    int n;
};
void staged_release(struct staged_push *staged);

/* Takes the pushes of a round, in the given order, and forgets those that were given up and what
 * the round makes obsolete: everything of the same workers up to the same sequence number. ERR_DATA
 * naming the push that is not there or does not have `n_values` values; then all stays. */
int aggregator_take(struct aggregator *aggregator, struct push_list members,
                    struct push_list dropped, int n_values, struct staged_push *staged,
                    struct error *err);

/* Bytes and pushes that are staged now. */
void aggregator_size(struct aggregator *aggregator, int64_t *bytes, int64_t *pushes);

#endif
