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

const struct op_def op_Identity = {
    .name = "Identity",
    .inputs = "input: T",
    .outputs = "output: T",
    .attrs = "T: any",
    .doc = "The input as it is; of a variable, its value.",
    .flags = OP_VIEW | OP_PASSES,
    .rows = ROWS_ALIKE,
    .identity = {.when = SAME_ALWAYS, .says = "does nothing"},
    .half = HALF_CLEAR,
    .cost = cost_view,
    .shape = infer_unchanged,
    .gradient = pass_through,
};

const struct op_def op_StopGradient = {
    .name = "StopGradient",
    .inputs = "input: T",
    .outputs = "output: T",
    .attrs = "T: any",
    .doc = "The input as it is; no gradient flows back through it.",
    .flags = OP_NO_GRADIENT | OP_VIEW | OP_PASSES,
    .rows = ROWS_ALIKE,
    .half = HALF_CLEAR,
    .cost = cost_view,
    .shape = infer_unchanged,
    .no_gradient = "that is what it is for",
};

/* The gradient is checked as well, with the same message. */
static void check_gradient(struct grad *g)
{
    struct attr message = {"message", *node_attr(g->node, "message")};
    g->in[0] = build_op(&g->b, "CheckNumerics", &g->out[0], 1, &message, 1);
}

const struct op_def op_CheckNumerics = {
    .name = "CheckNumerics",
    .inputs = "tensor: T",
    .outputs = "output: T",
    .attrs = "T: floating, message: string",
    .doc = "The input as it is; an error with the message if an element is NaN or infinite.",
    .flags = OP_CHECKS,
    .half = HALF_CLEAR,
    .cost = cost_elements,
    .shape = infer_unchanged,
    .gradient = check_gradient,
};
