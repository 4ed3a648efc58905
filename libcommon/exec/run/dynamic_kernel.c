/* SPDX-License-Identifier: Apache-2.0
 *
 * Running the kernel of one item of a dynamic plan: locks of variables, inputs, the call.
 */
#include <stddef.h>

#include "base/container_of.h"
#include "base/memory.h"
#include "exec/run/builtin.h"
#include "exec/run/dynamic.h"

/* ---- locks ---- */

static void resume(struct variable_waiter *waiter)
{
    struct activation *a = CONTAINER_OF(waiter, struct activation, waiter);
    a->n_locked++;
    a->run->resume(a);
}

/* False: the activation was put aside until a lock is free. */
bool kernel_take_locks(struct activation *a, const variable_lock_vec *locks)
{
    a->locks = locks;
    while (a->n_locked < (int)locks->n) {
        const struct variable_lock *lock = &locks->items[a->n_locked];
        a->waiter.resume = resume;
        if (a->run->plan->is_whole && !a->run->execution.done)
            variable_lock_wait(lock->variable, lock->write);
        else if (!variable_lock(lock->variable, lock->write, &a->waiter))
            return false;
        a->n_locked++;
    }
    return true;
}

void kernel_give_locks(struct activation *a)
{
    while (a->n_locked > 0) {
        const struct variable_lock *lock = &a->locks->items[--a->n_locked];
        variable_unlock(lock->variable, lock->write);
    }
}

/* ---- one kernel ---- */

struct launch *kernel_launch(struct run *run, struct activation *a, struct launch *own)
{
    struct launch *launch = run->plan->is_whole ? &run->own : own;
    if (!a->region && run->plan->items.items[a->item].flags & KERNEL_ASYNC) {
        if (!a->launch)
            a->launch = mem_alloc(sizeof *a->launch);
        launch = a->launch;
    }
    launch->err.code = 0;
    launch->activation = a;
    return launch;
}

int kernel_gather_variable(struct run *run, const struct item *item, int i, struct token *input,
                           struct error *err)
{
    const struct plan *plan = run->plan;
    struct device *device = plan->options.device;
    const struct tensor *value = &plan->values.items[item->in[i]].variable->value;
    if (value->buffer && device->is_host) {
        tensor_share(&input->tensor, value);
        return 0;
    }
    input->tensor = *value;
    input->tensor.buffer = NULL;
    if (!(item->flags & KERNEL_ASYNC) || !value->data)
        return 0;
    struct buffer *buffer =
        value_alloc(plan, item->in[i], plan->pool, value->type, tensor_bytes(value));
    return value_copy(device, buffer, value, &input->tensor, err);
}

/* Points to each input's value, wherever it is. */
static int gather(struct run *run, struct launch *launch, struct tensor **in)
{
    struct activation *a = launch->activation;
    const struct plan *plan = run->plan;
    const struct item *item = &plan->items.items[a->item];
    int code = 0;
    for (int i = 0; i < item->n_in; i++) {
        struct value *value = &plan->values.items[item->in[i]];
        struct token *input = &a->iteration->inputs[item->first_input + i];
        in[i] = &input->tensor;
        if (value->kind == VALUE_VARIABLE && item->refs && item->refs[i]) {
            in[i] = &value->variable->value;
        } else if (value->kind == VALUE_VARIABLE) {
            int failed = kernel_gather_variable(run, item, i, input, &launch->err);
            code = code ? code : failed;
        } else if (value->kind == VALUE_CONSTANT && value->item < 0) {
            in[i] = &value->constant;
        } else if (value->kind == VALUE_FEED) {
            input->tensor = run->feeds[value->feed];
        } else if (!input->is_live) {
            in[i] = NULL; /* the other inputs of a Merge */
        } else if (item->seen && item->seen[i]) {
            input->tensor.shape = *item->seen[i];
        }
    }
    if (item->flags & KERNEL_ASYNC)
        kernel_give_locks(a);
    return code;
}

struct tensor **kernel_make_call(struct run *run, struct iteration *it, int id,
                                 struct call_host *host, struct kernel_call *call)
{
    struct plan *plan = run->plan;
    const struct item *item = &plan->items.items[id];
    struct tensor **in = it->pointers + item->first_input + item->first_output;
    struct tensor **out = in + item->n_in;
    for (int i = 0; i < item->n_out; i++)
        out[i] = &it->outputs[item->first_output + i];
    bool has_order = it->frame->def->has_order;
    *host = (struct call_host){.planned = has_order,
                               .counts = has_order && plan->pool && plan->options.device->is_host,
                               .fetches = &run->fetches,
                               .plan = plan,
                               .item = item,
                               .iteration = it,
                               .kept = it->kept ? it->kept + item->first_output : NULL,
                               .copies_reads = !has_order && !plan->keeps_reads,
                               .pool = plan->pool,
                               .on_device = &run->on_device,
                               .executor.done = run->async_done};
    *call = (struct kernel_call){.node = item->node,
                                 .state = item->state,
                                 .n_in = item->n_in,
                                 .n_out = item->n_out,
                                 .in = in,
                                 .out = out,
                                 .refs = item->refs,
                                 .device = plan->options.device,
                                 .step_block = device_step_block(&run->on_device),
                                 .item = plan->faults.first + (uint32_t)id,
                                 .threads = plan_team(plan),
                                 .executor = &host->executor};
    return in;
}

int kernel_run(struct run *run, struct launch *launch)
{
    struct activation *a = launch->activation;
    const struct item *item = &run->plan->items.items[a->item];
    if (item->builtin == BUILTIN_CONSTANT) {
        struct tensor *out = iteration_output(run->plan, a->iteration, item->out[0]);
        *out = run->plan->values.items[item->out[0]].constant;
        out->buffer = NULL; /* the plan's */
        return 0;
    }
    /* first: an asynchronous kernel's locks are given back once its inputs are gathered */
    if (item_begin(item, &run->on_device, &launch->err))
        return launch->err.code;
    struct tensor **in = kernel_make_call(run, a->iteration, a->item, &launch->host, &launch->call);
    kernel_bind(run, launch, a->iteration, &launch->host, &launch->call);
    if (gather(run, launch, in))
        return item_fail(item, &launch->err);
    if (item->scratch_bytes) {
        launch->scratch = pool_alloc(run->plan->pool, item->scratch_bytes);
        if (!launch->scratch)
            return error_set(&launch->err, ERR_OS, "no memory for %zu bytes of scratch%s",
                             item->scratch_bytes, mem_limit_text());
        launch->call.scratch = launch->scratch->data;
    }
    launch->start = item_start(&launch->call, run->step);
    int result = item_kernel(item)(&launch->call);
    if (result == KERNEL_PENDING) /* it may be done, and the step over */
        return result;
    return kernel_finish(run, launch, result);
}

int kernel_finish(struct run *run, struct launch *launch, int result)
{
    const struct item *item = &run->plan->items.items[launch->activation->item];
    return item_over(run->plan, item, &launch->call, launch->start, result);
}

void kernel_release_inputs(struct run *run, struct launch *launch)
{
    struct activation *a = launch->activation;
    iteration_drop_inputs(run->plan, a->iteration, a->item);
    kernel_give_locks(a);
    temporaries_free(&launch->temporaries);
    if (launch->scratch)
        launch->scratch->free(launch->scratch);
    launch->scratch = NULL;
}
