/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "exec/device/pool.h"
#include "exec/device/queue.h"
#include "exec/run/item.h"

/* A variable's value was copied for the call. */
static int keep(struct kernel_call *call, int i, struct tensor *kept)
{
    if (!call->in[i]->buffer)
        return kernel_keep_input(call, i, kept);
    tensor_share(kept, call->in[i]);
    return 0;
}

/* The fault as it is by now: kernels behind it may leave something before who gets the values
 * looks. */
static int make_point(struct kernel_call *call, struct device_point *at)
{
    const struct call_host *host = call_host(call);
    struct device *device = call->device;
    at->device = device;
    at->block = pool_alloc(host->pool, sizeof(struct step_block));
    if (!at->block)
        return error_set(call->err, ERR_OS, "no memory for a value that is handed over%s",
                         mem_limit_text());
    if (device->memory->copy(device, device_point_fault(at), &call->step_block->fault,
                             sizeof(struct fault), call->err))
        return call->err->code;
    at->ready = device->queue->record(device, QUEUE_COMPUTE, false);
    return 0;
}

int item_hand_over(struct kernel_call *call, struct tensor *values, struct device_point *at)
{
    int code = 0;
    for (int i = 0; !code && i < call->n_in; i++)
        code = keep(call, i, &values[i]);
    return code ? code : make_point(call, at);
}

int item_join(struct kernel_call *call, const struct device_point *at)
{
    if (at->device != call->device)
        return error_set(call->err, ERR_INTERNAL, "was sent what is in the memory of another %s:%d",
                         at->device->type, at->device->index);
    return device_point_join(at, call->step_block, call->err);
}

int item_copy_in(struct kernel_call *call, int i, const struct tensor *value)
{
    const struct call_host *host = call_host(call);
    struct device *device = call->device;
    struct tensor *out = kernel_alloc_output(call, i, &value->shape);
    if (!out)
        return call->err->code;
    queue_follow(device, QUEUE_IN, QUEUE_COMPUTE);
    struct device_timing *timing = item_start_copy(call, QUEUE_IN);
    int code =
        device->memory->copy_in(device, out->data, value->data, tensor_bytes(value), call->err);
    item_copied(call, timing);
    device_step_copied(host->on_device);
    queue_keep(device, QUEUE_IN, value);
    return code;
}

bool item_take_staged(struct kernel_call *call, const struct tensor *feed, int *code)
{
    struct device *device = call->device;
    struct staged_feed *staged = staged_find(call->step->staged, feed, device);
    struct tensor *out = staged ? kernel_alloc_output(call, 0, &feed->shape) : NULL;
    if (!staged)
        return false;
    *code = out ? 0 : call->err->code;
    if (out) {
        device->queue->wait(device, QUEUE_COMPUTE, staged->ready);
        *code = device->memory->copy(device, out->data, staged->memory->data, tensor_bytes(feed),
                                     call->err);
        item_copied(call, staged->timing);
        staged->timing = NULL;
    }
    staged_taken(call->step->staged, staged);
    return true;
}

int item_copy_out(struct kernel_call *call, struct copy_out *copy)
{
    const struct call_host *host = call_host(call);
    struct device_timing *timing = item_start_copy(call, QUEUE_OUT);
    int code = copy_out_enqueue(copy, host->host_pool, call->err);
    item_copied(call, timing);
    if (!code)
        copy_out_notify(copy);
    return code;
}
