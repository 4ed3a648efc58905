/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of items that the planner adds: fetches and copies.
 */
#include "exec/device/pool.h"
#include "exec/plan/plan_internal.h"

/* Whether the fetch is the one holder of what the step computed, in memory that outlives the
 * device. */
static bool is_left_to_fetch(const struct kernel_call *call)
{
    const struct call_host *host = call->executor;
    const struct value *value = &host->plan->values.items[host->item->in[0]];
    const struct buffer *buffer = call->in[0]->buffer;
    return !host->planned && call->device->is_host && value->kind == VALUE_COMPUTED &&
           !value->is_outgoing && buffer && atomic_load(&buffer->holders) == 1;
}

/* Fetches are there when the step is over, after a sync. */
static int fetch_run(struct kernel_call *call)
{
    struct call_host *host = call->executor;
    const struct tensor *in = call->in[0];
    struct tensor *fetch = &host->fetches[*(const int *)call->state];
    if (is_left_to_fetch(call))
        return kernel_take_input(call, 0, fetch);
    if (!host->plan->values.items[host->item->in[0]].on_device)
        return tensor_copy(fetch, in, call->err);
    if (tensor_alloc(fetch, in->type, &in->shape, call->err))
        return call->err->code;
    return call->device->copy_out(call->device, fetch->data, in->data, tensor_bytes(in), false,
                                  call->err);
}

const struct kernel_code plan_fetch_code = {.run = fetch_run};

static int copy_run(struct kernel_call *call)
{
    const struct tensor *in = call->in[0];
    struct tensor *out = kernel_alloc_output(call, 0, &in->shape);
    if (!out)
        return call->err->code;
    return call->device->copy(call->device, out->data, in->data, tensor_bytes(in), call->err);
}

const struct kernel_code plan_copy_code = {.run = copy_run};

/* A feed stays as it is until the step is over; other memory of the host may be used again. */
static int copy_in_run(struct kernel_call *call)
{
    struct call_host *host = call->executor;
    const struct tensor *in = call->in[0];
    bool wait = host->plan->values.items[host->item->in[0]].kind != VALUE_FEED;
    struct tensor *out = kernel_alloc_output(call, 0, &in->shape);
    if (!out)
        return call->err->code;
    return call->device->copy_in(call->device, out->data, in->data, tensor_bytes(in), wait,
                                 call->err);
}

static int copy_out_run(struct kernel_call *call)
{
    const struct tensor *in = call->in[0];
    struct tensor *out = kernel_alloc_output(call, 0, &in->shape);
    if (!out)
        return call->err->code;
    return call->device->copy_out(call->device, out->data, in->data, tensor_bytes(in), true,
                                  call->err);
}

const struct kernel_code plan_copy_in_code = {.run = copy_in_run};
const struct kernel_code plan_copy_out_code = {.run = copy_out_run};
