/* SPDX-License-Identifier: Apache-2.0
 *
 * The arguments of an update, by kind: references (the variable, then its slots), the gradient, and
 * scalars. Kernels of all devices share this.
 */
#ifndef TF_OPS_TRAIN_APPLY_H
#define TF_OPS_TRAIN_APPLY_H

#include "exec/device/kernel.h"

#define APPLY_SLOTS_MAX 2
#define APPLY_SCALARS_MAX 6

struct apply_arguments {
    void *w, *slots[APPLY_SLOTS_MAX]; /* NULL: the rule has none there */
    const void *g;
    enum dtype g_type; /* the variable's; of 16 bits, where that is float32 */
    int64_t n;         /* elements of the gradient, by which as many of the others change */
    const void *scalars[APPLY_SCALARS_MAX]; /* in declared order; NULL: the rule has no more */
    bool nesterov;
};

/* A node's arguments, found when its kernel is prepared. */
struct apply_inputs {
    enum apply_role {
        APPLY_SCALAR,
        APPLY_REFERENCE,
        APPLY_GRADIENT
    } roles[2 + APPLY_SLOTS_MAX + APPLY_SCALARS_MAX];
    int64_t first_row; /* of the gradient; -1: it is of all of the variable */
    bool nesterov;
};

/* An error if there are more arguments than have room. */
int apply_find_inputs(struct kernel_setup *setup, struct apply_inputs *form);

/* Opens the references for writing, so that a snapshot keeps its values. Everything lies where the
 * kernel's arguments do, scalars too; of a variable of which the gradient has some rows
 * (graph/update_rows.h), and of its slots, these. */
int apply_collect(struct kernel_call *call, const struct apply_inputs *form,
                  struct apply_arguments *arguments);

/* The references have their values, the first is the output. `result`: what run is to return. */
int apply_finish(struct kernel_call *call, int result);

/* ---- FusedApply: of N variables ---- */

#define APPLY_BATCH_MAX 32 /* variables that are updated at once */

/* Its inputs are variables, slots variable by variable, gradients, scalars. */
struct apply_batch {
    int n, n_slots, n_scalars; /* slots of each variable */
    bool computes;             /* the gradients: they are no inputs */
    bool nesterov;
    const char *rule; /* the op that it makes n times */
};

struct apply_batch apply_batch_of(const struct node *node);

/* Checks all shapes, then opens all references for writing: if it fails, nothing is changed. */
int apply_batch_open(struct kernel_call *call, const struct apply_batch *batch);

/* Collects the arguments of variables `first` to first + n - 1, when all are open. */
void apply_batch_collect(const struct kernel_call *call, const struct apply_batch *batch, int first,
                         int n, struct apply_arguments *arguments);

/* Finishes like apply_finish; the op has no output. */
int apply_batch_finish(struct kernel_call *call, int result);

#endif
