/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/infer.h"
#include "ops/lacking.h"
#include "pass/gradient/grad.h"

static int addn_shape(struct infer *infer)
{
    infer->out[0] = *infer_shape(infer, 0);
    for (int i = 1; i < infer->n_in; i++) {
        struct shape so_far = infer->out[0];
        if (!shape_merge(&so_far, infer_shape(infer, i), &infer->out[0]))
            return infer_fail(infer, "input %d is %s, those before %s", i,
                              shape_text(infer_shape(infer, i)), shape_text(&so_far));
    }
    return 0;
}

static void addn_gradient(struct grad *g)
{
    for (int i = 0; i < g->node->n_inputs; i++)
        g->in[i] = g->out[0];
}

const struct op_def op_AddN = {
    .name = "AddN",
    .inputs = "inputs: N*T",
    .outputs = "sum: T",
    .attrs = "N: int >= 1, T: real",
    .flags = OP_SUMS,
    .rule = "each",
    .identity = {.when = SAME_ALONE, .says = "sums one tensor"},
    .half = HALF_INFERRED,
    .shape = addn_shape,
    .doc = "The sum of tensors of one shape, added in their order.",
    .detail = NO_COMPLEX,
    .gradient = addn_gradient,
};
