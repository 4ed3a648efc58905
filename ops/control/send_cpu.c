/* SPDX-License-Identifier: Apache-2.0
 *
 * Send and Recv over the step's rendezvous.
 */
#include "base/memory.h"
#include "exec/step/rendezvous.h"

static int no_peer(struct kernel_call *call)
{
    return kernel_fail(call, "nothing connects it to '%s': all parts of a graph run together",
                       node_string(call->node, call->n_in ? "recv_device" : "send_device"));
}

/* What does not change from step to step. */
static int prepare(struct kernel_setup *setup)
{
    struct rendezvous_key *key = setup->state = mem_alloc(sizeof *key);
    key->tensor_name = node_string(setup->node, "tensor_name");
    key->send_device = node_string(setup->node, "send_device");
    key->recv_device = node_string(setup->node, "recv_device");
    return 0;
}

static struct rendezvous_key key_of(const struct kernel_call *call)
{
    struct rendezvous_key key = *(const struct rendezvous_key *)call->state;
    key.iteration = call->iteration;
    return key;
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

const struct kernel_code kernel_send = {.prepare = prepare, .run = send_run};

struct recv_wait {
    struct rendezvous_waiter waiter; /* first */
    struct kernel_call *call;
};

static void arrived(struct rendezvous_waiter *waiter, const struct tensor *value,
                    const struct error *failure)
{
    struct kernel_call *call = ((struct recv_wait *)waiter)->call;
    int code = 0;
    mem_free(waiter);
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
    struct recv_wait *waiting = mem_alloc(sizeof *waiting);
    waiting->waiter.arrived = arrived;
    waiting->call = call;
    rendezvous->receive(rendezvous, &key, &waiting->waiter);
    return KERNEL_PENDING;
}

const struct kernel_code kernel_recv = {.prepare = prepare, .run = recv_run};
