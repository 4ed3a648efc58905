/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of worker, incarnation and sequence number, as clocks output and aggregators read them.
 */
#ifndef TF_OPS_AGGREGATE_IDS_ANY_H
#define TF_OPS_AGGREGATE_IDS_ANY_H

#include "exec/device/kernel.h"
#include "exec/plan/plan.h"
#include "resource/push.h"

/* Returns the push id of a worker's step. */
static inline struct push_id id_of_step(const struct step *step)
{
    return (struct push_id){step->replica, step->incarnation, step->number};
}

/* Returns the container of a resource, as for variables. */
static inline const char *container_of_node(const struct node *node)
{
    const char *container = node_string(node, "container");
    return *container ? container : "default";
}

static inline struct push_id id_of_row(const struct tensor *rows, int row)
{
    const int64_t *r = (const int64_t *)rows->data + 3 * (size_t)row;
    return (struct push_id){r[0], (uint64_t)r[1], r[2]};
}

#endif
