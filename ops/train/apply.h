/* SPDX-License-Identifier: Apache-2.0
 *
 * The arguments of an update, by kind: references (the variable, then its slots), the gradient, and
 * scalars. What kernels of all devices share.
 */
#ifndef TF_OPS_TRAIN_APPLY_H
#define TF_OPS_TRAIN_APPLY_H

#include "exec/device/kernel.h"

#define APPLY_SLOTS_MAX 2
#define APPLY_SCALARS_MAX 6

struct apply_arguments {
    void *w, *slots[APPLY_SLOTS_MAX]; /* NULL: the rule has none there */
    const void *g;
    const void *scalars[APPLY_SCALARS_MAX]; /* in declared order; NULL: the rule has no more */
    bool nesterov;
};

/* That the arguments of the op have room there. */
int apply_check_arguments(struct kernel_setup *setup);

/* Opens the references for writing, so that a snapshot keeps its values. Everything lies where the
 * kernel's arguments do, scalars too. */
int apply_collect(struct kernel_call *call, struct apply_arguments *arguments);

/* The references have their values, the first is the output. `result`: what run is to return. */
int apply_finish(struct kernel_call *call, int result);

#endif
