/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops whose output is their input.
 */
#include "graph/infer.h"
#include "graph/op_cost.h"
#include "pass/gradient/grad.h"

static void pass_through(struct grad *g)
{
    g->in[0] = g->out[0];
}

#define PASSES_ON(op, ...)                                                                         \
    const struct op_def op_##op = {.name = #op,                                                    \
                                   .outputs = "output: T",                                         \
                                   .half = HALF_CLEAR,                                             \
                                   .shape = infer_unchanged,                                       \
                                   __VA_ARGS__}

PASSES_ON(Identity, .inputs = "input: T", .attrs = "T: any",
          .doc = "The input as it is; of a variable, its value.", .flags = OP_VIEW | OP_PASSES,
          .rule = "each", .identity = {.when = SAME_ALWAYS, .says = "does nothing"},
          .cost = cost_view, .gradient = pass_through);

PASSES_ON(StopGradient, .inputs = "input: T", .attrs = "T: any",
          .doc = "The input as it is; no gradient flows back through it.",
          .flags = OP_NO_GRADIENT | OP_VIEW | OP_PASSES, .rule = "each", .cost = cost_view,
          .no_gradient = "that is what it is for");

/* The gradient is also checked, with the same message. */
static void check_gradient(struct grad *g)
{
    g->in[0] = grad_op(g, "CheckNumerics", g->out, 1);
}

PASSES_ON(CheckNumerics, .inputs = "tensor: T", .attrs = "T: floating, message: string",
          .doc = "The input as it is; an error with the message if an element is NaN or infinite.",
          .rule = "output[...] = tensor[...]", .flags = OP_CHECKS, .cost = cost_elements,
          .gradient = check_gradient);
