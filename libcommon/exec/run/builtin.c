/* SPDX-License-Identifier: Apache-2.0
 *
 * The built-in kernels, and those of fetches and copies.
 */
#include "exec/run/builtin.h"
#include "base/memory.h"
#include "exec/device/pool.h"
#include "exec/device/queue.h"

/* Where there are tokens; elsewhere whoever takes it finds it in the plan. */
static int constant_run(struct kernel_call *call)
{
    const struct call_host *host = call_host(call);
    *call->out[0] = host->plan->values.items[host->item->out[0]].constant;
    call->out[0]->buffer = NULL; /* the plan's */
    return 0;
}

/* Returns whether the fetch is the one holder of what the step computed, in memory that outlives
 * the device. */
static bool is_left_to_fetch(const struct kernel_call *call)
{
    const struct call_host *host = call_host(call);
    const struct value *value = &host->plan->values.items[host->item->in[0]];
    const struct buffer *buffer = call->in[0]->buffer;
    return !host->planned && call->device->is_host && value->kind == VALUE_COMPUTED &&
           !value->is_outgoing && buffer && atomic_load(&buffer->holders) == 1;
}

/* Memory of the plan stays as it is until the step is over (plan_memory.c), and what is counted is
 * kept; a variable's is somebody else's next. */
static bool stays(const struct kernel_call *call)
{
    const struct call_host *host = call_host(call);
    const struct plan *plan = host->plan;
    int root = plan_root_value(plan, host->item->in[0]);
    return host->planned ? plan->values.items[root].kind == VALUE_COMPUTED
                         : call->in[0]->buffer != NULL;
}

int fetches_bring_home(const struct plan *plan, struct tensor *fetches, struct error *err)
{
    int code = 0;
    for (int i = 0; !code && i < plan->n_fetches; i++) {
        struct tensor there = fetches[i];
        if (!plan->values.items[plan->fetch_values[i]].on_device)
            continue;
        code = tensor_copy(&fetches[i], &there, err);
        if (code)
            fetches[i] = (struct tensor)TENSOR_INIT;
        tensor_release(&there);
    }
    return code;
}

static int copy_fetch(struct kernel_call *call, struct tensor *fetch)
{
    struct device *device = call->device;
    const struct tensor *in = call->in[0];
    queue_follow(device, QUEUE_OUT, QUEUE_COMPUTE);
    struct device_timer *timing = item_start_copy(call, QUEUE_OUT);
    int code = device->memory->copy_out(device, fetch->data, in->data, tensor_bytes(in), call->err);
    item_copied(call, timing);
    if (!call_host(call)->is_captured) /* for which the compute queue waits in the end */
        queue_keep(device, QUEUE_OUT, in);
    if (!stays(call))
        queue_follow(device, QUEUE_COMPUTE, QUEUE_OUT);
    return code ? code : KERNEL_ENQUEUED;
}

/* Fetches are there when the step is over. */
static int fetch_run(struct kernel_call *call)
{
    struct call_host *host = call_host(call);
    const struct tensor *in = call->in[0];
    struct tensor *fetch = &(*host->fetches)[*(const int *)call->state];
    const struct value *value = &host->plan->values.items[host->item->in[0]];
    if (is_left_to_fetch(call))
        return kernel_take_input(call, 0, fetch);
    if (!value->on_device)
        return tensor_copy(fetch, in, call->err);
    /* memory that the device copies well to, until the step is over (fetches_bring_home) */
    if (!host->is_captured &&
        tensor_in_buffer(fetch, in->type, &in->shape,
                         pool_alloc(host->plan->host_pool, tensor_bytes(in)), call->err))
        return call->err->code;
    return copy_fetch(call, fetch);
}

static int copy_run(struct kernel_call *call)
{
    const struct tensor *in = call->in[0];
    struct tensor *out = kernel_alloc_output(call, 0, &in->shape);
    if (!out)
        return call->err->code;
    struct device *device = call->device;
    int code = device->memory->copy(device, out->data, in->data, tensor_bytes(in), call->err);
    return code || device->is_host ? code : KERNEL_ENQUEUED;
}

/* The feed is on the device, or on its way there. */
static int take_staged(struct kernel_call *call, struct staged_feed *staged)
{
    struct device *device = call->device;
    struct tensor *out = kernel_alloc_output(call, 0, &call->in[0]->shape);
    int code = out ? 0 : call->err->code;
    if (out) {
        device->queue->wait(device, QUEUE_COMPUTE, staged->ready);
        code = device->memory->copy(device, out->data, staged->memory->data,
                                    tensor_bytes(call->in[0]), call->err);
        item_copied(call, staged->timing);
        staged->timing = NULL;
    }
    staged_taken(call->step->staged, staged);
    return code ? code : KERNEL_ENQUEUED;
}

/* Whoever uses the copy has the compute queue wait for it (item_begin). */
static int copy_in_run(struct kernel_call *call)
{
    const struct call_host *host = call_host(call);
    struct staged_feed *staged = plan_is_feed_copy(host->plan, host->item)
                                     ? staged_find(call->step->staged, call->in[0], call->device)
                                     : NULL;
    if (staged)
        return take_staged(call, staged);
    int code = item_copy_in(call, 0, call->in[0]);
    if (!code && !host->is_captured)
        queue_keep(call->device, QUEUE_IN, call->out[0]);
    return code ? code : KERNEL_ENQUEUED;
}

/* Gives a copy of a value that the host needs in the middle of a step. */
static int give_copy(struct kernel_call *call, struct tensor *values)
{
    return kernel_share_output(call, 0, values) ? 0 : call->err->code;
}

static int copy_out_run(struct kernel_call *call)
{
    return item_copy_out(call, give_copy);
}

int (*const builtin_kernels[N_BUILTINS])(struct kernel_call *call) = {
    [BUILTIN_CONSTANT] = constant_run,   [BUILTIN_FETCH] = fetch_run,
    [BUILTIN_COPY] = copy_run,           [BUILTIN_COPY_IN] = copy_in_run,
    [BUILTIN_COPY_OUT] = copy_out_run,   [BUILTIN_HAND_OVER] = hand_over_run,
    [BUILTIN_TAKE_OVER] = take_over_run, [BUILTIN_REDUCE] = reduce_run,
    [BUILTIN_LOOP] = while_run,
};
