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

#define APPLY_BATCH_MAX 32 /* variables updated at once */

/* Where a node has its arguments: the inputs begin with the variables, then come the slots,
 * variable by variable; `gradient` is the input of the first variable's gradient, and what is left
 * is scalars. */
struct apply_inputs {
    const char *rule;          /* the op, or the one that FusedApply replaces n times */
    int n, n_slots, n_scalars; /* variables; slots of each variable */
    int gradient;
    int n_gradients;   /* n; 0: the op computes them */
    int64_t first_row; /* of the gradient; -1: it covers the whole variable */
    bool nesterov, is_fused;
};

/* Finds them for a node. An error if there are too many arguments. */
int apply_find_inputs(struct kernel_setup *setup, struct apply_inputs *in);

/* Checks all shapes, then opens all references for writing, so that a snapshot keeps its values; on
 * failure nothing is changed. */
int apply_open(struct kernel_call *call, const struct apply_inputs *in);

/* Collects the arguments of variables `first` to first + n - 1, once all are open. All pointers,
 * scalars' too, are to the kernel arguments' memory. If the gradient has only some rows of the
 * variable (graph/update_rows.h), pointers of the variable and its slots are to these. */
void apply_collect(const struct kernel_call *call, const struct apply_inputs *in, int first, int n,
                   struct apply_arguments *arguments);

/* Marks the references as written, and makes the first the output, if there is one. `result`: run's
 * return value. */
int apply_finish(struct kernel_call *call, int result);

#endif
