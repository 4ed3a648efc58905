/* SPDX-License-Identifier: Apache-2.0
 *
 * The primitives of conditionals and loops. Their gradients depend on the structure that they form,
 * not on the single op (libcommon/pass).
 */
#include "graph/infer.h"
#include "graph/op_cost.h"

#define NO_GRADIENT "a loop has a loop for its gradient, a branch a branch"

static int switch_shape(struct infer *infer)
{
    infer->out[0] = infer->out[1] = *infer_shape(infer, 0);
    return infer_scalar(infer, 1);
}

#define FLOW(op, ...)                                                                              \
    const struct op_def op_##op = {.name = #op,                                                    \
                                   .flags = OP_CONTROL_FLOW,                                       \
                                   .half = HALF_CLEAR,                                             \
                                   .cost = cost_view,                                              \
                                   .no_gradient = NO_GRADIENT,                                     \
                                   __VA_ARGS__}

FLOW(Switch, .inputs = "data: T, pred: bool", .outputs = "output_false: T, output_true: T",
     .attrs = "T: any",
     .doc = "Sends its input to the output that the predicate chooses; the other one is dead.",
     .detail = "Nothing that depends on a dead tensor runs, until a Merge.", .shape = switch_shape);

/* Merges the shapes of the inputs known so far; at first a back edge is unknown. */
static int merge_shape(struct infer *infer)
{
    bool any = false;
    for (int i = 0; i < infer->n_in; i++) {
        if (!infer->in[i])
            continue;
        const struct shape *in = infer_shape(infer, i);
        infer->out[0] = any ? shape_join(&infer->out[0], in) : *in;
        any = true;
    }
    infer->out[1] = SHAPE_SCALAR;
    return 0;
}

FLOW(Merge, .inputs = "inputs: N*T", .outputs = "output: T, value_index: int32",
     .attrs = "T: any, N: int >= 1",
     .doc = "The first of its inputs that arrives alive, and its index; dead if all are.",
     .shape = merge_shape);

FLOW(Enter, .inputs = "data: T", .outputs = "output: T",
     .attrs = "T: any, frame_name: string, is_constant: bool = false, "
              "parallel_iterations: int = 10 >= 1",
     .doc = "Brings a tensor into iteration 0 of a loop's frame.",
     .detail = "With is_constant it is there in every iteration. At most parallel_iterations "
               "iterations of the frame are under way at once.",
     .shape = infer_unchanged);

FLOW(Exit, .inputs = "data: T", .outputs = "output: T", .attrs = "T: any",
     .doc = "Brings a tensor out of a loop's frame.", .shape = infer_unchanged);

FLOW(NextIteration, .inputs = "data: T", .outputs = "output: T", .attrs = "T: any",
     .doc = "Brings a tensor into the next iteration of its frame.", .shape = infer_unchanged);

const struct op_def op_LoopCond = {
    .name = "LoopCond",
    .inputs = "input: bool",
    .outputs = "output: bool",
    .doc = "The predicate that decides whether a loop goes on.",
    .flags = OP_CONTROL_FLOW | OP_NO_GRADIENT,
    .cost = cost_view,
    .shape = infer_all_scalars,
    .no_gradient = NO_GRADIENT,
};
