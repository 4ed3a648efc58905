/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking at values while a step runs.
 */
#include "graph/infer.h"
#include "graph/op_cost.h"
#include "pass/gradient/grad.h"

static void print_gradient(struct grad *g)
{
    g->in[0] = g->out[0];
}

const struct op_def op_Print = {
    .name = "Print",
    .inputs = "input: T, data: U...",
    .outputs = "output: T",
    .attrs = "T: any, U: list(any), message: string = \"\", first_n: int = -1, "
             "summarize: int = 3",
    .doc = "Its first input as it is; prints the others to standard error.",
    .detail = "The line is message, then the first summarize elements of each tensor (all if it is "
              "negative) in brackets. Only the first first_n lines are printed, all if it is "
              "negative.",
    .flags = OP_STATEFUL,
    .half = HALF_KEPT,
    .cost = cost_elements,
    .shape = infer_unchanged,
    .gradient = print_gradient,
};

static int assert_shape(struct infer *infer)
{
    return infer_scalar(infer, 0);
}

const struct op_def op_Assert = {
    .name = "Assert",
    .inputs = "condition: bool, data: T...",
    .attrs = "T: list(any), summarize: int = 3",
    .doc = "An error that shows the data if the condition is false.",
    .detail = "summarize is the number of elements shown of each tensor, all if it is negative.",
    .flags = OP_STATEFUL | OP_NO_GRADIENT,
    .half = HALF_KEPT,
    .cost = cost_elements,
    .shape = assert_shape,
    .no_gradient = "it has no result",
};
