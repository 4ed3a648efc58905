/* SPDX-License-Identifier: Apache-2.0
 *
 * Send and Recv of a value that stays in the memory of its device: what receives gets it where it
 * is, and nothing waits but the device's queue. A device that the sender's reaches gets a copy,
 * from memory to memory. A rendezvous that takes no values of devices gets one in host memory, and
 * brings such.
 */
#include <string.h>

#include "base/memory.h"
#include "exec/device/deferred.h"
#include "exec/device/pool.h"
#include "exec/device/queue.h"
#include "exec/run/builtin.h"
#include "exec/step/rendezvous.h"

/* ---- Send ---- */

static int send_here(struct kernel_call *call, struct rendezvous *rendezvous)
{
    struct rendezvous_key key = rendezvous_key_of(call);
    struct rendezvous_value value = {.tensor = TENSOR_INIT};
    if (!item_hand_over(call, &value.tensor, &value.at))
        return rendezvous->send(rendezvous, &key, &value, call->err);
    rendezvous_value_release(&value);
    return call->err->code;
}

static int send_copied(struct kernel_call *call, struct tensor *copied)
{
    struct rendezvous *rendezvous = rendezvous_of(call);
    struct rendezvous_key key = rendezvous_key_of(call);
    struct rendezvous_value value = {.tensor = *copied};
    *copied = (struct tensor)TENSOR_INIT;
    return rendezvous->send(rendezvous, &key, &value, call->err);
}

int hand_over_run(struct kernel_call *call)
{
    struct rendezvous *rendezvous = rendezvous_of(call);
    if (!rendezvous)
        return call->err->code;
    if (!call->in[0]) {
        struct rendezvous_key key = rendezvous_key_of(call);
        return rendezvous->send(rendezvous, &key, NULL, call->err);
    }
    return rendezvous->takes_devices ? send_here(call, rendezvous)
                                     : item_copy_out(call, send_copied);
}

/* ---- Recv ---- */

static bool is_of_peer(const struct kernel_call *call, const struct rendezvous_value *value)
{
    const struct device *here = call->device, *there = value->at.device;
    return there->peer && !strcmp(there->type, here->type) && there->index != here->index;
}

/* The memory is the sender's until the copy is over. */
static int copy_from_peer(struct kernel_call *call, const struct rendezvous_value *value, void *to,
                          void *fault)
{
    struct device *here = call->device, *there = value->at.device;
    const struct tensor *from = &value->tensor, block = {.buffer = value->at.block};
    const void *found = device_point_fault(&value->at);
    int code = there->peer->copy_to(there, fault, here, found, sizeof(struct fault), call->err);
    if (!code)
        code = there->peer->copy_to(there, to, here, from->data, tensor_bytes(from), call->err);
    queue_keep(there, QUEUE_OUT, from);
    queue_keep(there, QUEUE_OUT, &block);
    return code;
}

/* A copy waits for who computes the value, and for who had the memory that it goes to. */
static int take_from_peer(struct kernel_call *call, const struct rendezvous_value *value)
{
    const struct call_host *host = call_host(call);
    struct device *here = call->device, *there = value->at.device;
    const struct tensor *out = kernel_alloc_output(call, 0, &value->tensor.shape);
    struct buffer *fault = out ? pool_alloc(host->pool, sizeof(struct fault)) : NULL;
    if (!fault)
        return out ? error_set(call->err, ERR_OS, "no memory for a value of another device%s",
                               mem_limit_text())
                   : call->err->code;
    device_follow(there, QUEUE_OUT, here, QUEUE_COMPUTE);
    there->queue->wait(there, QUEUE_OUT, value->at.ready);
    int code = copy_from_peer(call, value, out->data, fault->data);
    device_follow(here, QUEUE_COMPUTE, there, QUEUE_OUT);
    if (!code)
        code = here->leave_fault(here, call->step_block, fault->data, call->err);
    fault->free(fault);
    return code;
}

static int take_received(struct kernel_call *call, const struct rendezvous_value *value)
{
    thread_enter_device(call->device, 1);
    if (!value->at.device) {
        int code = item_copy_in(call, 0, &value->tensor);
        device_step_await_copies(call_host(call)->on_device);
        return code;
    }
    if (is_of_peer(call, value))
        return take_from_peer(call, value);
    bool is_there = !item_join(call, &value->at) && kernel_share_output(call, 0, &value->tensor);
    return is_there ? 0 : call->err->code;
}

int take_over_run(struct kernel_call *call)
{
    return rendezvous_receive(call, take_received);
}
