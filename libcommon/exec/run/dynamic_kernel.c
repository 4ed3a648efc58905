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

/* Its own memory, shared; where it is written in place a copy for kernels that may take long
 * without computing. */
static int gather_variable(struct run *run, const struct item *item, int i, struct tensor *input,
                           struct error *err)
{
    const struct plan *plan = run->plan;
    struct device *device = plan->options.device;
    const struct tensor *value = &plan->values.items[item->in[i]].variable->value;
    if (value->buffer && device->is_host) {
        tensor_share(input, value);
        return 0;
    }
    *input = *value;
    input->buffer = NULL;
    if (!(item->flags & KERNEL_ASYNC) || !value->data)
        return 0;
    struct buffer *buffer =
        value_alloc(plan, item->in[i], plan->pool, value->type, tensor_bytes(value));
    return value_copy(device, buffer, value, input, err);
}

int region_gather(struct run *run, struct launch *launch, struct iteration *it, int id)
{
    const struct plan *plan = run->plan;
    const struct item *item = &plan->items.items[id];
    struct token *inputs = it->inputs + item->first_input;
    for (int i = 0; i < item->n_in; i++) {
        int v = item->in[i];
        bool is_seen = item->seen && item->seen[i], is_ref = item->refs && item->refs[i];
        if (it->frame->def->has_order) {
            if (is_seen)
                inputs[i].tensor = (struct tensor){.type = plan->values.items[v].type,
                                                   .shape = *item->seen[i],
                                                   .data = iteration_value(run, it, v)->data};
            continue;
        }
        if (plan->values.items[v].kind == VALUE_VARIABLE && !is_ref &&
            gather_variable(run, item, i, &inputs[i].tensor, &launch->err))
            return item_fail(item, &launch->err);
        if (!is_seen)
            continue;
        if (region_has_made(plan, v, item->region))
            share_value(&inputs[i].tensor, iteration_output(plan, it, v));
        inputs[i].tensor.shape = *item->seen[i];
    }
    return 0;
}

/* Points to each input of a point, wherever it is; NULL: the other inputs of a Merge. */
static int gather_inputs(struct run *run, struct launch *launch, struct tensor **in)
{
    struct activation *a = launch->activation;
    struct iteration *it = a->iteration;
    const struct item *item = &run->plan->items.items[a->item];
    int code = region_gather(run, launch, it, a->item);
    for (int i = 0; i < item->n_in; i++) {
        const struct token *input = &it->inputs[item->first_input + i];
        bool is_read = run->plan->values.items[item->in[i]].kind == VALUE_VARIABLE;
        in[i] = iteration_input(run, it, a->item, i);
        if (in[i] == &input->tensor && !input->is_live && !is_read)
            in[i] = NULL;
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
                                 .scratch_bytes = item->scratch_bytes,
                                 .form = item->code ? item->code->form : 0,
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
    if (gather_inputs(run, launch, in))
        return launch->err.code;
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
