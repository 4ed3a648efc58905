/* SPDX-License-Identifier: Apache-2.0
 *
 * Updates of several variables by one rule, with the same scalars.
 */
#include <inttypes.h>

#include "base/vec.h"
#include "graph/infer.h"
#include "graph/op.h"
#include "graph/op_cost.h"
#include "ops/matrix/product.h"

/* The number of slots per variable, and of scalars that all share, in declared order. */
static const struct apply_form {
    const char *op;
    int64_t n_slots, n_scalars;
} forms[] = {
    {"ApplyAdadelta", 2, 3},
    {"ApplyAdagrad", 1, 1},
    {"ApplyAdam", 2, 6},
    {"ApplyFtrl", 2, 4},
    {"ApplyMomentum", 1, 2},
    {"ApplyRMSProp", 2, 4},
    {"ApplyGradientDescent", 0, 1},
};

static int check_shape(struct infer *infer, int variable, const char *what, int input)
{
    struct shape merged;
    if (shape_merge(infer_shape(infer, variable), infer_shape(infer, input), &merged))
        return 0;
    return infer_fail(infer, "variable %d and its %s must have the same shape, not %s and %s",
                      variable, what, shape_text(infer_shape(infer, variable)),
                      shape_text(infer_shape(infer, input)));
}

/* Inputs are variables, slots variable by variable, gradients (if any), scalars. */
static int check_inputs(struct infer *infer, int n, bool has_gradients)
{
    const char *rule = node_attr(infer->node, "rule")->s;
    size_t n_forms = sizeof forms / sizeof *forms, i_form = names_find(forms, n_forms, rule);
    if (i_form == n_forms)
        return infer_fail(infer, "there is no rule '%s'", rule);
    const struct apply_form *form = &forms[i_form];
    int n_scalars = (int)node_int(infer->node, "S");
    int n_slots = (int)node_int(infer->node, "M"), code = 0;
    int scalar = n + n_slots + (has_gradients ? n : 0);
    if (n_slots != (int64_t)n * form->n_slots || n_scalars != form->n_scalars)
        return infer_fail(infer,
                          "%s of %d variables has %" PRId64 " slots and %" PRId64
                          " scalars, not %d and %d",
                          rule, n, (int64_t)n * form->n_slots, form->n_scalars, n_slots, n_scalars);
    for (int i = 0; i < n_slots && !code; i++)
        code = check_shape(infer, i / (n_slots / n), "slot", n + i);
    for (int i = 0; i < n && has_gradients && !code; i++)
        code = check_shape(infer, i, "gradient", n + n_slots + i);
    for (int i = scalar; i < scalar + n_scalars && !code; i++)
        code = infer_scalar(infer, i);
    return code;
}

static int fused_apply_shape(struct infer *infer)
{
    enum dtype type = node_type(infer->node, "T"), gradient = node_type(infer->node, "G");
    if (gradient != type && (type != FLOAT32 || dtype_bytes(gradient) != 2))
        return infer_fail(infer, "gradients of %s cannot update variables of %s",
                          dtype_name(gradient), dtype_name(type));
    return check_inputs(infer, (int)node_int(infer->node, "N"), true);
}

static int product_apply_shape(struct infer *infer)
{
    const struct shape *variable = infer_shape(infer, 0);
    struct shape product;
    if (product_shape(infer, infer->n_in - 2, infer->n_in - 1, &product))
        return infer->err->code;
    if (!shape_merge(variable, &product, &infer->out[0]))
        return infer_fail(infer, "the product is %s, the variable %s", shape_text(&product),
                          shape_text(variable));
    return check_inputs(infer, 1, false);
}

static void fused_apply_cost(const struct cost_query *query, struct op_cost *cost)
{
    cost_elements(query, cost);
    cost->operations = cost->bytes / (double)dtype_bytes(node_type(query->node, "T"));
}

#define FUSED_UPDATE(op, ...)                                                                      \
    const struct op_def op_##op = {.name = #op,                                                    \
                                   .flags = OP_STATEFUL | OP_NO_GRADIENT,                          \
                                   .half = HALF_KEPT,                                              \
                                   .cost = fused_apply_cost,                                       \
                                   .no_gradient = "it changes variables",                          \
                                   __VA_ARGS__}

FUSED_UPDATE(
    FusedApply, .inputs = "vars: Ref(N*T), slots: Ref(M*T), grads: N*G, scalars: S*T",
    .attrs = "N: int >= 1, M: int >= 0, S: int >= 1, T: floating, G: floating, rule: string, "
             "use_nesterov: bool = false",
    .doc = "Several updates by one rule at once; made of them for a device.",
    .detail =
        "As the op `rule` for each variable with its slots, which are listed variable by variable, "
        "and its gradient; the scalars are those of `rule`, in its order, and count for all. "
        "Variables and slots are different ones. Gradients of 16 bits may update variables of "
        "float32.",
    .shape = fused_apply_shape);

FUSED_UPDATE(
    FusedMatMulApply, .inputs = "var: Ref(T), slots: Ref(M*T), scalars: S*T, a: T, b: T",
    .outputs = "out: Ref(T)",
    .attrs = "transpose_a: bool = false, transpose_b: bool = false, M: int >= 0, S: int >= 1, "
             "T: float32, rule: string, use_nesterov: bool = false",
    .doc = "An update by the product of two matrices; made of both for a device.",
    .detail = "As the op `rule` for the variable with its slots; the scalars are those of `rule`, "
              "in its order. The gradient is never there as a whole.",
    .shape = product_apply_shape);
