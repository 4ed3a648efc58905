/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan set: the plans of one request on a graph that was cut into parts (graph/join.h), one for
 * each device that the request needs, run together as one step. Feeds and fetches are found in
 * whichever part has them. On one device the set is a single plan.
 */
#ifndef TF_EXEC_PLAN_SET_H
#define TF_EXEC_PLAN_SET_H

#include "exec/plan/plan.h"

/* What the plan sets of a session have in common. */
struct session_options {
    struct plan_options plan; /* variables NULL: the session has its own store */

    /* The devices of a graph that was cut into one part for each; the caller keeps them, and
     * plan.device is unused. NULL: all nodes are on plan.device. */
    struct device *const *devices;
    int n_devices;
};

struct plan_set;

/* As plan_new. ERR_CONFIG if a node is assigned to a device that is not given. */
int plan_set_new(const struct graph *graph, const struct session_options *options,
                 const struct plan_request *request, struct plan_set **set, struct error *err);
void plan_set_free(struct plan_set *set);

/* As plan_run and plan_start. The first part that fails ends the step on all devices, and its error
 * is the step's; the step is over when all parts are. A rendezvous of the step is used by the parts
 * and stays the caller's; without one, several parts get one of their own. */
void plan_set_start(struct plan_set *set, struct step *step, const struct tensor *feeds,
                    struct tensor *fetches, struct step_done *done);
int plan_set_run(struct plan_set *set, struct step *step, const struct tensor *feeds,
                 struct tensor *fetches, struct error *err);

/* plan_trim of all plans. */
void plan_set_trim(struct plan_set *set);

/* The plans, in the order of devices; the set owns them. */
int plan_set_plans(const struct plan_set *set, struct plan *const **plans);

#endif
