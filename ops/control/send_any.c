/* SPDX-License-Identifier: Apache-2.0
 *
 * Send and Recv over the step's rendezvous, of values in host memory. What stays on a device with
 * memory of its own is the executor's (exec/run/hand_over.c).
 */
#include "exec/step/rendezvous.h"

static int send_run(struct kernel_call *call)
{
    struct rendezvous *rendezvous = rendezvous_of(call);
    struct rendezvous_key key = rendezvous_key_of(call);
    struct rendezvous_value value = {.tensor = TENSOR_INIT};
    if (!rendezvous || (call->in[0] && kernel_keep_input(call, 0, &value.tensor)))
        return call->err->code;
    return rendezvous->send(rendezvous, &key, call->in[0] ? &value : NULL, call->err);
}

const struct kernel_code kernel_send = {.prepare = rendezvous_prepare, .run = send_run};

static int take(struct kernel_call *call, const struct rendezvous_value *value)
{
    const struct device *device = value->at.device;
    if (device)
        return error_set(call->err, ERR_INTERNAL, "was sent what is in the memory of %s:%d",
                         device->type, device->index);
    return kernel_share_output(call, 0, &value->tensor) ? 0 : call->err->code;
}

static int recv_run(struct kernel_call *call)
{
    return rendezvous_receive(call, take);
}

const struct kernel_code kernel_recv = {.prepare = rendezvous_prepare, .run = recv_run};
