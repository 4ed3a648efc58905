/* SPDX-License-Identifier: Apache-2.0
 *
 * Send and Recv over the step's rendezvous.
 */
#include "exec/rendezvous.h"

static int no_peer(struct kernel_call *call)
{
    return kernel_fail(call, "nothing connects it to '%s': all parts of a graph run together",
                       node_string(call->node, call->n_in ? "recv_device" : "send_device"));
}

static struct rendezvous_key key_of(const struct kernel_call *call)
{
    return (struct rendezvous_key){.tensor_name = node_string(call->node, "tensor_name"),
                                   .iteration = call->iteration,
                                   .send_device = node_string(call->node, "send_device"),
                                   .recv_device = node_string(call->node, "recv_device")};
}

static int send_run(struct kernel_call *call)
{
    struct rendezvous *rendezvous = call->step->rendezvous;
    struct rendezvous_key key = key_of(call);
    struct tensor value = TENSOR_INIT;
    if (!rendezvous)
        return no_peer(call);
    if (call->in[0] && kernel_keep_input(call, 0, &value))
        return call->err->code;
    int code = rendezvous->send(rendezvous, &key, call->in[0] ? &value : NULL, call->err);
    tensor_release(&value);
    return code;
}

const struct kernel_code kernel_send = {.run = send_run};

struct waiting {
    struct rendezvous_waiter waiter; /* first */
    struct kernel_call *call;
};

static void arrived(struct rendezvous_waiter *waiter, const struct tensor *value,
                    const struct error *failure)
{
    struct kernel_call *call = ((struct waiting *)waiter)->call;
    int code = 0;
    if (failure) {
        *call->err = *failure;
        code = failure->code;
    } else if (value && value->type != call->node->outputs[0].type)
        code = kernel_fail(call, "was sent %s", dtype_name(value->type));
    else if (value && !kernel_share_output(call, 0, value))
        code = call->err->code;
    kernel_done(call, code);
}

/* A dead value leaves the output out. */
static int recv_run(struct kernel_call *call)
{
    struct rendezvous *rendezvous = call->step->rendezvous;
    struct rendezvous_key key = key_of(call);
    if (!rendezvous)
        return no_peer(call);
    struct waiting *waiting = kernel_temporary(call, sizeof *waiting);
    if (!waiting)
        return call->err->code;
    waiting->waiter.arrived = arrived;
    waiting->call = call;
    rendezvous->receive(rendezvous, &key, &waiting->waiter);
    return KERNEL_PENDING;
}

const struct kernel_code kernel_recv = {.run = recv_run};
