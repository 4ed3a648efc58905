/* SPDX-License-Identifier: Apache-2.0
 *
 * How kernels call their step's collective.
 */
#ifndef TF_EXEC_COLLECTIVE_KERNEL_H
#define TF_EXEC_COLLECTIVE_KERNEL_H

#include "exec/device/kernel.h"
#include "exec/step/collective.h"

/* Finds the kind by its name in a graph. Returns false if there is none. */
bool collective_kind_of(const char *reduction, enum collective_kind *kind);

/* The options of a node for all its calls; the state of a kernel that calls a collective begins
 * with them. `schedule.hosts` belongs to the node. */
struct collective_options {
    struct collective_group group;
    struct collective_schedule schedule;
    int n_hosts;
    int32_t priority;
    bool by_device, by_servers; /* as in a call */
    bool wants_all;             /* it is an error if a member has left */
};

struct collective_options collective_options_of(const struct node *node);

/* Returns the device part of the node's schedule. Otherwise the node has the options of a direct
 * sum. */
enum by_device collective_by_device(const struct node *node);
bool collective_by_servers(const struct node *node);

/* The state of an AllReduce. */
struct collective_reduction {
    struct collective_options options;
    enum collective_kind kinds[]; /* of its inputs */
};

/* Makes the state, and checks the schedule's attributes. */
int collective_prepare(struct kernel_setup *setup);

/* Makes the outputs of a call from the results, whose types are right: 0, or an error code. */
typedef int collective_take(struct kernel_call *call, const struct collective_results *results);

/* Contributes values, which are released before it returns. `what` has their kinds and number, and
 * all else of a call but the key and what the kernel's state has. Returns KERNEL_PENDING or an
 * error code; or, without a collective, the result of `take` for the values themselves: the call is
 * not over then. */
int collective_ask(struct kernel_call *call, struct tensor *values, struct collective_call what,
                   collective_take *take);

/* Returns the node's groups. */
struct collective_group collective_group_of(const struct node *node);

/* Declines the node's call in this step, since its contribution is dead. Does nothing if the node
 * is no collective op or the step has no collective. Returns 0 or an error code. */
int collective_decline(const struct step *step, const struct node *node, uint64_t iteration,
                       struct error *err);

#endif
