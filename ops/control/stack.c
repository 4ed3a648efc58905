/* SPDX-License-Identifier: Apache-2.0
 *
 * Stacks that live for one step: a loop pushes what its gradient pops.
 */
#include "graph/infer.h"
#include "graph/op_cost.h"
#include "ops/lacking.h"

#define STACK(op, ...)                                                                             \
    const struct op_def op_##op = {.name = #op, .half = HALF_CLEAR, .cost = cost_view, __VA_ARGS__}

STACK(Stack, .outputs = "handle: resource", .attrs = "elem_type: any, stack_name: string = \"\"",
      .doc = "A new, empty stack of tensors, which is gone at the end of the step.",
      .flags = OP_STATEFUL | OP_NO_GRADIENT, .shape = infer_output_scalar,
      .no_gradient = "it has no inputs");

static int push_shape(struct infer *infer)
{
    infer->out[0] = *infer_shape(infer, 1);
    return infer_scalar(infer, 0);
}

STACK(StackPush, .inputs = "handle: resource, elem: T", .outputs = "output: T",
      .attrs = "T: numeric|bool|resource, swap_memory: bool = false",
      .doc = "Pushes a tensor onto a stack, and passes it through.", .detail = NO_STRINGS,
      .flags = OP_STATEFUL | OP_NO_GRADIENT, .keeps = 1 << 1, .shape = push_shape,
      .no_gradient = "stacks are what gradients of loops are made with");

static int pop_shape(struct infer *infer)
{
    infer->out[0] = *node_attr(infer->node, "shape")->shape;
    return infer_scalar(infer, 0);
}

STACK(StackPop, .inputs = "handle: resource", .outputs = "elem: elem_type",
      .attrs = "elem_type: numeric|bool|resource, shape: shape = ?",
      .doc = "Takes the tensor that was pushed last from a stack.",
      .detail = "shape is what is known of all elements. Popping an empty stack is an error."
                "\n" NO_STRINGS,
      .flags = OP_STATEFUL | OP_NO_GRADIENT | OP_SHAPED_BY_DATA, .shape = pop_shape,
      .no_gradient = "stacks are what gradients of loops are made with");
