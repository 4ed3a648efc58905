/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/step/rendezvous.h"

#include <stddef.h>

#include "base/container_of.h"
#include "base/memory.h"

void rendezvous_value_release(struct rendezvous_value *value)
{
    tensor_release(&value->tensor);
    device_point_release(&value->at);
    *value = (struct rendezvous_value){0};
}

int rendezvous_prepare(struct kernel_setup *setup)
{
    const struct node *node = setup->node;
    struct rendezvous_key *key = setup->state = mem_alloc(sizeof *key);
    *key = (struct rendezvous_key){.tensor_name = node_string(node, "tensor_name"),
                                   .send_device = node_string(node, "send_device"),
                                   .recv_device = node_string(node, "recv_device"),
                                   .priority = node_priority(node)};
    return 0;
}

struct rendezvous_key rendezvous_key_of(const struct kernel_call *call)
{
    struct rendezvous_key key = *(const struct rendezvous_key *)call->state;
    key.iteration = call->iteration;
    return key;
}

struct rendezvous *rendezvous_of(struct kernel_call *call)
{
    struct rendezvous *rendezvous = call->step->rendezvous;
    if (!rendezvous)
        kernel_fail(call, "nothing connects it to '%s': all parts of a graph run together",
                    node_string(call->node, call->n_in ? "recv_device" : "send_device"));
    return rendezvous;
}

struct receiving {
    struct rendezvous_waiter waiter;
    struct kernel_call *call;
    int (*take)(struct kernel_call *call, const struct rendezvous_value *value);
};

static int receive(const struct receiving *r, const struct rendezvous_value *value)
{
    if (value->tensor.type != r->call->node->outputs[0].type)
        return kernel_fail(r->call, "was sent %s", dtype_name(value->tensor.type));
    return r->take(r->call, value);
}

static void arrived(struct rendezvous_waiter *waiter, const struct rendezvous_value *value,
                    const struct error *failure)
{
    struct receiving *r = CONTAINER_OF(waiter, struct receiving, waiter);
    struct kernel_call *call = r->call;
    int code = failure ? failure->code : 0;
    if (failure)
        *call->err = *failure;
    else if (value)
        code = receive(r, value);
    mem_free(r);
    kernel_done(call, code);
}

int rendezvous_receive(struct kernel_call *call,
                       int (*take)(struct kernel_call *call, const struct rendezvous_value *value))
{
    struct rendezvous *rendezvous = rendezvous_of(call);
    struct rendezvous_key key = rendezvous_key_of(call);
    if (!rendezvous)
        return call->err->code;
    struct receiving *r = mem_alloc(sizeof *r);
    *r = (struct receiving){.waiter.arrived = arrived, .call = call, .take = take};
    rendezvous->receive(rendezvous, &key, &r->waiter);
    return KERNEL_PENDING;
}
