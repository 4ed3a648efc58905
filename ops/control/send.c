/* SPDX-License-Identifier: Apache-2.0
 *
 * How a tensor moves from the graph of one device to that of another. tf-part makes the nodes in
 * pairs: the Recv is matched by the name of its Send.
 */
#include "graph/infer.h"
#include "graph/op_cost.h"

#define TRANSFER(op, ...)                                                                          \
    const struct op_def op_##op = {.name = #op,                                                    \
                                   .half = HALF_KEPT,                                              \
                                   .cost = cost_view,                                              \
                                   .no_gradient = "a graph is cut after its gradients are there",  \
                                   __VA_ARGS__}

TRANSFER(Send, .inputs = "tensor: T",
         .attrs = "T: any, tensor_name: string, send_device: string, recv_device: string",
         .doc = "Hands its input to the Recv of the same tensor_name, which is on another device.",
         .detail = "In a loop it does so in every iteration; a dead tensor is handed over as dead. "
                   "It never waits.",
         .flags = OP_STATEFUL | OP_CONTROL_FLOW | OP_NO_GRADIENT, .keeps = 1 << 0);

/* The values of several Sends of one _group (pass/part/part.h) that a request needs. */
#define GROUP_ATTRS                                                                                \
    "T: list(any) >= 1, shapes: list(shape), names: list(string), tensor_name: string, "           \
    "send_device: string, recv_device: string"

static int group_shape(struct infer *infer)
{
    const struct attr_value *shapes = node_attr(infer->node, "shapes");
    const struct attr_value *names = node_attr(infer->node, "names");
    int n = infer->n_in + infer->n_out;
    if (shapes->n != n || names->n != n)
        return infer_fail(infer, "%d values, %d shapes and %d names", n, shapes->n, names->n);
    for (int i = 0; i < infer->n_out; i++)
        infer->out[i] = shapes->shapes[i];
    return 0;
}

TRANSFER(
    SendGroup, .inputs = "tensors: T...", .attrs = GROUP_ATTRS,
    .doc = "Several Sends at once, for a RecvGroup of the same names; made of them for a step.",
    .flags = OP_STATEFUL | OP_CONTROL_FLOW | OP_NO_GRADIENT, .shape = group_shape);

TRANSFER(RecvGroup, .outputs = "tensors: T...", .attrs = GROUP_ATTRS,
         .doc = "The tensors that the SendGroup of the same names is given.",
         .flags = OP_STATEFUL | OP_CONTROL_FLOW | OP_NO_GRADIENT | OP_ASYNC, .shape = group_shape);

TRANSFER(Recv, .outputs = "tensor: tensor_type",
         .attrs =
             "tensor_type: any, tensor_name: string, send_device: string, recv_device: string, "
             "shape: shape = ?",
         .doc = "The tensor that the Send of the same tensor_name is given, in the same iteration.",
         .detail = "shape is what is known of it.",
         .flags = OP_STATEFUL | OP_CONTROL_FLOW | OP_NO_GRADIENT | OP_ASYNC | OP_SHAPED_BY_DATA,
         .shape = infer_output_declared);
