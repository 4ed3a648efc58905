/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/infer.h"
#include "ops/lacking.h"
#include "pass/gradient/grad.h"

/* Only between floating types; integers and booleans have no gradient. */
static void cast_gradient(struct grad *g)
{
    enum dtype from = node_type(g->node, "SrcT"), to = node_type(g->node, "DstT");
    struct attr back = {"DstT", attr_type(from)};
    if (dtype_is_floating(from) && dtype_is_floating(to))
        g->in[0] = build_op(&g->b, "Cast", &g->out[0], 1, &back, 1);
}

const struct op_def op_Cast = {
    .name = "Cast",
    .inputs = "x: SrcT",
    .outputs = "y: DstT",
    .attrs = "SrcT: real|bool, DstT: real|bool",
    .rule = "each",
    .identity = {.when = SAME_TYPE, .says = "casts to the type that it is"},
    .value = infer_value_unchanged,
    .half = HALF_KEPT,
    .shape = infer_unchanged,
    .doc = "x as another type.",
    .detail =
        "Floats are cut toward zero to integers; what an integer type cannot hold becomes its "
        "nearest value, and NaN 0. Integers that do not fit a smaller type lose their upper "
        "bits. To bool: whether x is not 0. Between floats: to nearest, ties to even."
        "\n" NO_COMPLEX_OR_STRINGS,
    .gradient = cast_gradient,
};
