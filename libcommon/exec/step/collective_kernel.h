/* SPDX-License-Identifier: Apache-2.0
 *
 * How kernels ask their step's collective.
 */
#ifndef TF_EXEC_COLLECTIVE_KERNEL_H
#define TF_EXEC_COLLECTIVE_KERNEL_H

#include "exec/device/kernel.h"
#include "exec/step/collective.h"

/* Finds the kind by the name that a graph gives. False: there is none. */
bool collective_kind_of(const char *reduction, enum collective_kind *kind);

/* The options of a node for all its calls; the state of a kernel that asks begins with them. Hosts
 * are the node's. */
struct collective_options {
    struct collective_group group;
    struct collective_schedule schedule;
    int n_hosts;
    int32_t priority;
    bool by_device, by_servers; /* as in a call */
    bool wants_all;             /* that a member has left is an error */
};

struct collective_options collective_options_of(const struct node *node);

/* Returns the part of the node's schedule about devices; its other options are those of a sum that
 * goes directly. */
enum by_device collective_by_device(const struct node *node);
bool collective_by_servers(const struct node *node);

/* The state of an AllReduce. */
struct collective_reduction {
    struct collective_options options;
    enum collective_kind kinds[]; /* of its inputs */
};

/* Makes it. The schedule's attributes are checked. */
int collective_prepare(struct kernel_setup *setup);

/* Makes the outputs of a call, whose types are right, of the results: 0, or an error code. */
typedef int collective_take(struct kernel_call *call, const struct collective_results *results);

/* Returns whether a worker has left whose part of variables the others would need; the error is
 * set. */
bool collective_lacks(struct kernel_call *call, const struct collective_results *results);

/* Brings values, which are released before it returns, as `what` says of them: kinds, how many, and
 * what else a call has but a key and what the kernel's state says. KERNEL_PENDING; or an error
 * code, or 0 where there is no collective and `take` was given the values themselves: the call is
 * not over then. */
int collective_ask(struct kernel_call *call, struct tensor *values, struct collective_call what,
                   collective_take *take);

/* Returns the node's groups. */
struct collective_group collective_group_of(const struct node *node);

/* The node's call is not made in this step, since what it would bring is dead. Nothing, if the node
 * is no collective or the step has none. An error code, or 0. */
int collective_decline(const struct step *step, const struct node *node, uint64_t iteration,
                       struct error *err);

#endif
