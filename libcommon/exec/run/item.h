/* SPDX-License-Identifier: Apache-2.0
 *
 * Running one item, in plans of both kinds. Private to the executor.
 */
#ifndef TF_EXEC_ITEM_H
#define TF_EXEC_ITEM_H

#include "exec/plan/call.h"
#include "exec/step/device_point.h"
#include "exec/step/prefetched.h"

/* kernel_memory.c: memory for a value of a dynamic plan; NULL: the allocation failed. */
struct buffer *value_alloc(const struct plan *plan, int value, struct pool *pool, enum dtype type,
                           size_t bytes);
/* Copies into `buffer`; ERR_OS if the buffer is NULL (its allocation failed). */
int value_copy(struct device *device, struct buffer *buffer, const struct tensor *from,
               struct tensor *to, struct error *err);
/* Before the kernel of an item with `is_prepared` runs: ERR_DATA unless every variable that it
 * reads has a value; the device waits for copies of its inputs. */
int item_begin(const struct kernel_call *call);
/* An item that always runs, and of which the kernel is all: no locks, nothing to prepare before or
 * to drop after it. Long plans of short kernels run as fast as memory delivers the data read here,
 * so these are apart from the other data of items. */
struct plain_call {
    int (*run)(struct kernel_call *call); /* NULL: it is no plain item */
    struct kernel_call *call;
};
/* The start of a kernel, for the trace, which is told when the kernel has run. */
struct item_start {
    int64_t time;
    struct device_timer *timing; /* of enqueued work; NULL: of none */
};
struct item_start item_start(const struct kernel_call *call);
/* The same for a copy that a kernel of the planner's own items enqueues. */
struct device_timer *item_start_copy(const struct kernel_call *call, enum queue_kind queue);
void item_copied(const struct kernel_call *call, struct device_timer *timing);
/* Fails a run that fetches a dead value: ERR_DATA. */
int item_fail_dead(struct error *err);
/* When a step that was not captured has ended well: copies fetches from the device's host memory to
 * memory that outlives the device. */
int fetches_bring_home(const struct plan *plan, struct tensor *fetches, struct error *err);
/* After the call's kernel, which began at `start` (if there is a trace): tells the trace, and
 * checks the outputs if that was requested. Returns 0, or the error code with the node's name in
 * front. */
int item_over(const struct kernel_call *call, struct item_start start, int result);

/* Built-in kernels: of items that the planner adds, and of ops that the executor implements. */
extern int (*const builtin_kernels[N_BUILTINS])(struct kernel_call *call);

/* loop.c */
int while_run(struct kernel_call *call);

/* The kernel of an item. */
static inline int (*item_kernel(const struct item *item))(struct kernel_call *call)
{
    return item->builtin ? builtin_kernels[item->builtin] : item->code->run;
}

#endif
