/* SPDX-License-Identifier: Apache-2.0
 *
 * Built-in kernels: of items that the planner adds, and of ops that are the executor's own. Private
 * to exec/run.
 */
#ifndef TF_EXEC_BUILTIN_H
#define TF_EXEC_BUILTIN_H

#include "exec/run/item.h"

extern int (*const builtin_kernels[N_BUILTINS])(struct kernel_call *call);

/* hand_over.c, reduce.c, loop.c */
int hand_over_run(struct kernel_call *call);
int take_over_run(struct kernel_call *call);
int reduce_run(struct kernel_call *call);
int while_run(struct kernel_call *call);

/* The kernel of an item. */
static inline int (*item_kernel(const struct item *item))(struct kernel_call *call)
{
    return item->builtin ? builtin_kernels[item->builtin] : item->code->run;
}

#endif
