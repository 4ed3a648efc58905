/* SPDX-License-Identifier: Apache-2.0 */
#include "base/container_of.h"
#include "base/memory.h"
#include "exec/device/pool.h"
#include "exec/device/queue.h"
#include "exec/run/item.h"

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
        if (call->in[i]->buffer) /* of a variable it is a copy that was made for the call */
            tensor_share(&values[i], call->in[i]);
        else
            code = kernel_keep_input(call, i, &values[i]);
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
    struct device_timer *timing = item_start_copy(call, QUEUE_IN);
    int code =
        device->memory->copy_in(device, out->data, value->data, tensor_bytes(value), call->err);
    item_copied(call, timing);
    device_step_copied(host->on_device);
    queue_keep(device, QUEUE_IN, value);
    return code;
}

/* ---- to the host ---- */

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

int item_copy_out(struct kernel_call *call,
                  int (*then)(struct kernel_call *call, struct tensor *values))
{
    size_t n = (size_t)call->n_in;
    struct outward *l = mem_alloc(sizeof *l + 2 * n * sizeof *l->values);
    l->call = call;
    l->then = then;
    l->copy = (struct copy_out){
        .from = l->values, .to = l->values + n, .n = call->n_in, .done = copy_over};
    int code = item_hand_over(call, l->copy.from, &l->copy.at);
    if (!code) /* before the time that the copies take */
        call->device->queue->wait(call->device, QUEUE_OUT, l->copy.at.ready);
    struct device_timer *timing = code ? NULL : item_start_copy(call, QUEUE_OUT);
    if (!code)
        code = copy_out_enqueue(&l->copy, call_host(call)->plan->host_pool, call->err);
    item_copied(call, timing);
    if (code)
        outward_free(l);
    else
        copy_out_notify(&l->copy);
    return code ? code : KERNEL_PENDING;
}
