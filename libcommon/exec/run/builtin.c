/* SPDX-License-Identifier: Apache-2.0
 *
 * The built-in kernels.
 */
#include <string.h>

#include "base/container_of.h"
#include "base/memory.h"
#include "exec/device/deferred.h"
#include "exec/device/pool.h"
#include "exec/device/queue.h"
#include "exec/run/item.h"
#include "exec/step/collective_kernel.h"
#include "exec/step/rendezvous.h"

/* ---- values that pass from plan to plan, on a device with memory of its own ---- */

/* Collects the inputs and their place in the device's queue, with a copy of the error flag as it is
 * now: kernels enqueued later may set it before the receiver reads it. */
static int hand_over_inputs(struct kernel_call *call, struct tensor *values,
                            struct device_point *at)
{
    struct device *device = call->device;
    for (int i = 0; i < call->n_in; i++)
        if (call->in[i]->buffer) /* a variable's is a copy that was made for the call */
            tensor_share(&values[i], call->in[i]);
        else if (kernel_keep_input(call, i, &values[i]))
            return call->err->code;
    at->device = device;
    at->block = pool_alloc(call_host(call)->pool, sizeof(struct step_block));
    if (!at->block)
        return error_set(call->err, ERR_OS, "no memory for a value that is handed over%s",
                         mem_limit_text());
    if (device->memory->copy(device, QUEUE_COMPUTE, device_point_fault(at),
                             &call->step_block->fault, sizeof(struct fault), call->err))
        return call->err->code;
    at->ready = device->queue->record(device, QUEUE_COMPUTE, false);
    return 0;
}

static int bring_in(struct kernel_call *call, int i, const struct tensor *value)
{
    const struct call_host *host = call_host(call);
    struct device *device = call->device;
    struct tensor *out = kernel_alloc_output(call, i, &value->shape);
    if (!out)
        return call->err->code;
    queue_follow(device, QUEUE_IN, QUEUE_COMPUTE);
    struct device_timer *timing = item_start_copy(call, QUEUE_IN);
    int code = queue_copy(device, QUEUE_IN, out->data, value, call->err);
    item_copied(call, timing);
    device_step_copied(host->on_device);
    queue_keep(device, QUEUE_IN, value);
    return code;
}

/* Makes the outputs of values that have come. Those on the device stay where they are, and only its
 * queue waits; others are in host memory. */
static int take_values(struct kernel_call *call, const struct tensor *values,
                       const struct device_point *at)
{
    bool is_here = at->device;
    int code = 0;
    if (is_here && at->device != call->device)
        code = error_set(call->err, ERR_INTERNAL, "was sent what is in the memory of another %s:%d",
                         at->device->type, at->device->index);
    else if (is_here)
        code = device_point_join(at, call->step_block, call->err);
    for (int i = 0; !code && i < call->n_out; i++)
        if (!is_here)
            code = bring_in(call, i, &values[i]);
        else if (!kernel_share_output(call, i, &values[i]))
            code = call->err->code;
    if (!is_here)
        device_step_await_copies(call_host(call)->on_device);
    return code;
}

struct outward {
    struct copy_out copy;
    struct kernel_call *call;
    int (*then)(struct kernel_call *call, struct tensor *values);
    struct tensor values[]; /* the inputs, and their copies */
};

static void outward_free(struct outward *l)
{
    copy_out_release(&l->copy);
    mem_free(l);
}

static void copy_over(struct copy_out *copy, const struct error *failure)
{
    struct outward *l = CONTAINER_OF(copy, struct outward, copy);
    struct kernel_call *call = l->call;
    if (failure)
        *call->err = *failure;
    int code = failure ? failure->code : l->then(call, copy->to);
    outward_free(l);
    if (code != KERNEL_PENDING)
        kernel_done(call, code);
}

static int bring_out(struct kernel_call *call,
                     int (*then)(struct kernel_call *call, struct tensor *values))
{
    size_t n = (size_t)call->n_in;
    struct outward *l = mem_alloc(sizeof *l + 2 * n * sizeof *l->values);
    l->call = call;
    l->then = then;
    l->copy = (struct copy_out){
        .from = l->values, .to = l->values + n, .n = call->n_in, .done = copy_over};
    int code = hand_over_inputs(call, l->copy.from, &l->copy.at);
    if (!code) /* not part of the time that the copies take */
        call->device->queue->wait(call->device, QUEUE_OUT, l->copy.at.ready);
    struct device_timer *timing = code ? NULL : item_start_copy(call, QUEUE_OUT);
    if (!code)
        code = copy_out_enqueue(&l->copy, call_host(call)->plan->pools[0], call->err);
    item_copied(call, timing);
    if (code)
        outward_free(l);
    else
        copy_out_notify(&l->copy);
    return code ? code : KERNEL_PENDING;
}

/* ---- constants, fetches and copies ---- */

/* Runs where there are tokens; elsewhere the consumers find the constant in the plan. */
static int constant_run(struct kernel_call *call)
{
    const struct call_host *host = call_host(call);
    *call->out[0] = host->plan->values.items[host->item->out[0]].constant;
    call->out[0]->buffer = NULL; /* it belongs to the plan */
    return 0;
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

/* A fetch is complete when the step is over. */
static int fetch_run(struct kernel_call *call)
{
    struct call_host *host = call_host(call);
    const struct plan *plan = host->plan;
    struct device *device = call->device;
    const struct tensor *in = call->in[0];
    struct tensor *fetch = &host->fetches[*(const int *)call->state];
    const struct value *value = &plan->values.items[host->item->in[0]];
    /* the sole holder of a computed value, in memory that outlives the device */
    if (!host->planned && device->is_host && value->kind == VALUE_COMPUTED && !value->is_outgoing &&
        in->buffer && atomic_load(&in->buffer->holders) == 1)
        return kernel_take_input(call, 0, fetch);
    if (!value->on_device)
        return tensor_copy(fetch, in, call->err);
    /* memory that the device copies to fast, until the step is over (fetches_bring_home) */
    if (!host->is_captured &&
        tensor_in_buffer(fetch, in->type, &in->shape, pool_alloc(plan->pools[0], tensor_bytes(in)),
                         call->err))
        return call->err->code;
    queue_follow(device, QUEUE_OUT, QUEUE_COMPUTE);
    struct device_timer *timing = item_start_copy(call, QUEUE_OUT);
    int code = queue_copy(device, QUEUE_OUT, fetch->data, in, call->err);
    item_copied(call, timing);
    if (!host->is_captured) /* in captured work, the compute queue waits at the end */
        queue_keep(device, QUEUE_OUT, in);
    /* Memory of the plan stays unchanged until the step is over (plan_memory.c), and counted memory
     * is kept; but a variable may be written next. */
    int root = plan_root_value(plan, host->item->in[0]);
    if (host->planned ? plan->values.items[root].kind != VALUE_COMPUTED : !in->buffer)
        queue_follow(device, QUEUE_COMPUTE, QUEUE_OUT);
    return code ? code : KERNEL_ENQUEUED;
}

static int copy_run(struct kernel_call *call)
{
    const struct tensor *in = call->in[0];
    struct tensor *out = kernel_alloc_output(call, 0, &in->shape);
    if (!out)
        return call->err->code;
    struct device *device = call->device;
    int code = queue_copy(device, QUEUE_COMPUTE, out->data, in, call->err);
    return code || device->is_host ? code : KERNEL_ENQUEUED;
}

/* A feed may be on the device, or on its way there. Consumers of a copy make the compute queue wait
 * for it (item_begin). */
static int copy_in_run(struct kernel_call *call)
{
    const struct call_host *host = call_host(call);
    struct device *device = call->device;
    struct prefetched_feed *prefetched =
        plan_is_feed_copy(host->plan, host->item)
            ? prefetched_find(call->step->prefetched, call->in[0], device)
            : NULL;
    int code = 0;
    if (!prefetched) {
        code = bring_in(call, 0, call->in[0]);
        if (!code && !host->is_captured)
            queue_keep(device, QUEUE_IN, call->out[0]);
        return code ? code : KERNEL_ENQUEUED;
    }
    struct tensor *out = kernel_alloc_output(call, 0, &call->in[0]->shape);
    if (out) {
        device->queue->wait(device, QUEUE_COMPUTE, prefetched->ready);
        code = device->memory->copy(device, QUEUE_COMPUTE, out->data, prefetched->memory->data,
                                    tensor_bytes(call->in[0]), call->err);
        item_copied(call, prefetched->timing);
        prefetched->timing = NULL;
    }
    prefetched_taken(call->step->prefetched, prefetched);
    return !out || code ? call->err->code : KERNEL_ENQUEUED;
}

/* Outputs a copy of a value that the host needs in the middle of a step. */
static int give_copy(struct kernel_call *call, struct tensor *values)
{
    return kernel_share_output(call, 0, values) ? 0 : call->err->code;
}

static int copy_out_run(struct kernel_call *call)
{
    return bring_out(call, give_copy);
}

/* ---- Send and Recv of values that stay in the memory of a device ---- */

static int send_copied(struct kernel_call *call, struct tensor *copied)
{
    struct rendezvous *rendezvous = rendezvous_of(call);
    struct rendezvous_key key = rendezvous_key_of(call);
    struct rendezvous_value value = {.tensor = *copied};
    *copied = (struct tensor)TENSOR_INIT;
    return rendezvous->send(rendezvous, &key, &value, call->err);
}

/* The receiver gets the value in its place, and only the device's queue waits. A device that the
 * sender's device can reach gets a copy, from memory to memory. A rendezvous that takes no device
 * values gets a copy in host memory. */
static int hand_over_run(struct kernel_call *call)
{
    struct rendezvous *rendezvous = rendezvous_of(call);
    struct rendezvous_value value = {.tensor = TENSOR_INIT};
    if (!rendezvous)
        return call->err->code;
    if (call->in[0] && !rendezvous->takes_devices)
        return bring_out(call, send_copied);
    struct rendezvous_key key = rendezvous_key_of(call);
    if (!call->in[0] || !hand_over_inputs(call, &value.tensor, &value.at))
        return rendezvous->send(rendezvous, &key, call->in[0] ? &value : NULL, call->err);
    rendezvous_value_release(&value);
    return call->err->code;
}

/* The copy waits until the value is computed, and until its own memory is free. The sender's memory
 * is kept until the copy is over. */
static int take_from_peer(struct kernel_call *call, const struct rendezvous_value *value)
{
    struct device *here = call->device, *there = value->at.device;
    const struct tensor *from = &value->tensor, block = {.buffer = value->at.block};
    const struct tensor *out = kernel_alloc_output(call, 0, &from->shape);
    struct buffer *fault = out ? pool_alloc(call_host(call)->pool, sizeof(struct fault)) : NULL;
    if (!fault)
        return out ? error_set(call->err, ERR_OS, "no memory for a value of another device%s",
                               mem_limit_text())
                   : call->err->code;
    device_follow(there, QUEUE_OUT, here, QUEUE_COMPUTE);
    there->queue->wait(there, QUEUE_OUT, value->at.ready);
    int code = there->peer->copy_to(there, fault->data, here, device_point_fault(&value->at),
                                    sizeof(struct fault), call->err);
    if (!code)
        code =
            there->peer->copy_to(there, out->data, here, from->data, tensor_bytes(from), call->err);
    queue_keep(there, QUEUE_OUT, from);
    queue_keep(there, QUEUE_OUT, &block);
    device_follow(here, QUEUE_COMPUTE, there, QUEUE_OUT);
    if (!code)
        code = here->leave_fault(here, call->step_block, fault->data, call->err);
    fault->free(fault);
    return code;
}

static int take_received(struct kernel_call *call, const struct rendezvous_value *value)
{
    const struct device *here = call->device, *there = value->at.device;
    thread_enter_device(call->device, 1);
    if (there && there->peer && !strcmp(there->type, here->type) && there->index != here->index)
        return take_from_peer(call, value);
    return take_values(call, &value->tensor, &value->at);
}

static int take_over_run(struct kernel_call *call)
{
    return rendezvous_receive(call, take_received);
}

/* ---- AllReduce of values in the memory of a device ---- */

/* Values go to the step's collective in host memory. If the collective adds on this device, they
 * stay there, and only the device's queue waits. */
static int take_reduced(struct kernel_call *call, const struct collective_results *results)
{
    thread_enter_device(call->device, 1);
    return take_values(call, results->values, &results->at);
}

static int bring_copies(struct kernel_call *call, struct tensor *values)
{
    const struct collective_reduction *reduction = call->state;
    const struct collective_call what = {.kinds = reduction->kinds, .n = call->n_in};
    return collective_ask(call, values, what, take_reduced);
}

static int reduce_handed_over(struct kernel_call *call)
{
    const struct call_host *host = call_host(call);
    const struct collective *collective = call->step->collective;
    const struct collective_reduction *reduction = call->state;
    if (collective && !(reduction->options.by_device && collective->adds_on == call->device))
        return bring_out(call, bring_copies);
    struct tensor *values = mem_array((size_t)call->n_in + 1, sizeof *values);
    struct collective_call what = {.kinds = reduction->kinds,
                                   .n = call->n_in,
                                   .pool = host->pool,
                                   .host_pool = host->plan->pools[0]};
    int code = hand_over_inputs(call, values, &what.at);
    if (!code) {
        code = collective_ask(call, values, what, take_reduced);
    } else {
        for (int i = 0; i < call->n_in; i++)
            tensor_release(&values[i]);
        device_point_release(&what.at);
    }
    mem_free(values);
    return code;
}

int (*const builtin_kernels[N_BUILTINS])(struct kernel_call *call) = {
    [BUILTIN_CONSTANT] = constant_run,   [BUILTIN_FETCH] = fetch_run,
    [BUILTIN_COPY] = copy_run,           [BUILTIN_COPY_IN] = copy_in_run,
    [BUILTIN_COPY_OUT] = copy_out_run,   [BUILTIN_HAND_OVER] = hand_over_run,
    [BUILTIN_TAKE_OVER] = take_over_run, [BUILTIN_REDUCE] = reduce_handed_over,
    [BUILTIN_LOOP] = while_run,
};
