/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/infer.h"
#include "graph/op.h"
#include "pass/gradient/grad.h"

static void l2_gradient(struct grad *g)
{
    g->in[0] = build_binary(&g->b, "Mul", grad_input(g, 0), g->out[0]);
}

const struct op_def op_L2Loss = {
    .name = "L2Loss",
    .inputs = "t: T",
    .outputs = "output: T",
    .attrs = "T: floating",
    .doc = "Half the sum of squares of all elements.",
    .half = HALF_DENIED,
    .rule = "output[] += t[...]",
    .shape = infer_output_scalar,
    .gradient = l2_gradient,
};
