/* SPDX-License-Identifier: Apache-2.0
 *
 * The arguments of an update, by kind: references (the variable, then its slots), the gradient, and
 * scalars. Shared by kernels of all devices.
 */
#ifndef TF_OPS_TRAIN_APPLY_H
#define TF_OPS_TRAIN_APPLY_H

#include "exec/device/kernel.h"

#define APPLY_SLOTS_MAX 2
#define APPLY_SCALARS_MAX 6

struct apply_arguments {
    void *w, *slots[APPLY_SLOTS_MAX]; /* NULL: the rule lacks the slot */
    const void *g;
    enum dtype g_type; /* the variable's; or 16 bits with float32 variables */
    int64_t n;         /* elements of the gradient, and of the others that change */
    const void *scalars[APPLY_SCALARS_MAX]; /* in declared order; NULL: no more */
    bool nesterov;
};

/* The roles of a node's arguments, found when its kernel is prepared. */
struct apply_inputs {
    enum apply_role {
        APPLY_SCALAR,
        APPLY_REFERENCE,
        APPLY_GRADIENT
    } roles[2 + APPLY_SLOTS_MAX + APPLY_SCALARS_MAX];
    int64_t first_row; /* of the gradient; -1: it covers the whole variable */
    bool nesterov;
};

/* Finds the roles. An error if there are too many arguments. */
int apply_find_inputs(struct kernel_setup *setup, struct apply_inputs *form);

/* Opens the references for writing, so that a snapshot keeps its values. All pointers, scalars'
 * too, are to the kernel arguments' memory. If the gradient has only some rows of the variable
 * (graph/update_rows.h), pointers of the variable and its slots are to these. */
int apply_collect(struct kernel_call *call, const struct apply_inputs *form,
                  struct apply_arguments *arguments);

/* Marks the references as written, and makes the first the output. `result`: run's return value. */
int apply_finish(struct kernel_call *call, int result);

/* ---- FusedApply: several variables ---- */

#define APPLY_BATCH_MAX 32 /* variables updated at once */

/* Its inputs are variables, slots variable by variable, gradients, scalars. */
struct apply_batch {
    int n, n_slots, n_scalars; /* slots of each variable */
    bool computes;             /* it computes the gradients, which are not inputs */
    bool nesterov;
    const char *rule; /* the op that it replaces n times */
};

struct apply_batch apply_batch_of(const struct node *node);

/* Checks all shapes, then opens all references for writing; on failure nothing is changed. */
int apply_batch_open(struct kernel_call *call, const struct apply_batch *batch);

/* Collects the arguments of variables `first` to first + n - 1, once all are open. */
void apply_batch_collect(const struct kernel_call *call, const struct apply_batch *batch, int first,
                         int n, struct apply_arguments *arguments);

/* Finishes like apply_finish; the op has no output. */
int apply_batch_finish(struct kernel_call *call, int result);

#endif
