/* SPDX-License-Identifier: Apache-2.0
 *
 * What running an item takes, in plans of both kinds. Private to the executor.
 */
#ifndef TF_EXEC_ITEM_H
#define TF_EXEC_ITEM_H

#include "exec/plan/call.h"
#include "exec/step/device_point.h"
#include "exec/step/prefetched.h"

/* kernel_memory.c: memory for a value of a dynamic plan; NULL: there is none. */
struct buffer *value_alloc(const struct plan *plan, int value, struct pool *pool, enum dtype type,
                           size_t bytes);
/* A copy in that memory, which may have been refused (NULL): ERR_OS. */
int value_copy(struct device *device, struct buffer *buffer, const struct tensor *from,
               struct tensor *to, struct error *err);
/* Before the item's kernel runs: ERR_DATA unless every variable that it reads has a value; what was
 * copied to the device for it is waited for there. */
int item_make_ready(const struct item *item, struct device_step *on_device, struct error *err);
static inline int item_begin(const struct item *item, struct device_step *on_device,
                             struct error *err)
{
    return item->is_prepared ? item_make_ready(item, on_device, err) : 0;
}
/* An item that always runs, and whose kernel is all that there is to it: no locks, nothing that is
 * to be ready before or let go of after. Long plans of short kernels run as fast as memory brings
 * what they look at, so these are apart from all else that is known of items. */
struct plain_call {
    int (*run)(struct kernel_call *call); /* NULL: it is none of these */
    struct kernel_call *call;
};
/* When a kernel begins to run, if there is a trace, which is told when it has run. */
struct item_start {
    int64_t time;
    struct device_timer *timing; /* of what is enqueued; NULL: of nothing */
};
struct item_start item_start_traced(const struct kernel_call *call);
static inline struct item_start item_start(const struct kernel_call *call, const struct step *step)
{
    return step->trace ? item_start_traced(call) : (struct item_start){0};
}
/* The same of a copy that the kernel of an item of the planner's own enqueues. */
struct device_timer *item_start_copy(const struct kernel_call *call, enum queue_kind queue);
void item_copied(const struct kernel_call *call, struct device_timer *timing);
/* Fails a run that was to fetch a dead value: ERR_DATA. */
int item_fail_dead(struct error *err);
/* When a step that was not captured has ended well: fetches that came from the device are copied to
 * memory that outlives it. */
int fetches_bring_home(const struct plan *plan, struct tensor *fetches, struct error *err);
/* When the call's kernel, which began at `start` (if there is a trace), has run: tells the trace,
 * and looks at the outputs if that was asked for. 0, or the error code with the node's name in
 * front. */
int item_over(const struct plan *plan, const struct item *item, const struct kernel_call *call,
              struct item_start start, int result);

/* Built-in kernels: of items that the planner adds, and of ops that are the executor's own. */
extern int (*const builtin_kernels[N_BUILTINS])(struct kernel_call *call);

/* loop.c */
int while_run(struct kernel_call *call);

/* The kernel of an item. */
static inline int (*item_kernel(const struct item *item))(struct kernel_call *call)
{
    return item->builtin ? builtin_kernels[item->builtin] : item->code->run;
}

#endif
