/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/train/apply.h"

#include "exec/state/variable.h"
#include "graph/update_rows.h"

int apply_find_inputs(struct kernel_setup *setup, struct apply_inputs *in)
{
    const struct node *node = setup->node;
    const struct op *op = node->op;
    const struct attr_value *nesterov = node_attr(node, "use_nesterov");
    const struct attr_value *several = node_attr(node, "N"), *rule = node_attr(node, "rule");
    int refs = 0;
    while (refs < op->n_inputs && op->inputs[refs].is_ref)
        refs++;
    *in = (struct apply_inputs){.rule = op->def->name,
                                .n = 1,
                                .n_slots = refs - 1,
                                .n_scalars = op->n_inputs - refs - 1,
                                .gradient = op->def->descent.gradient,
                                .n_gradients = 1,
                                .first_row = update_first_row(node),
                                .nesterov = nesterov && nesterov->b,
                                .is_fused = rule != NULL};
    if (rule) {
        in->rule = rule->s;
        in->n = several ? (int)several->i : 1;
        in->n_slots = (int)node_int(node, "M") / in->n;
        in->n_scalars = (int)node_int(node, "S");
        in->gradient = in->n * (1 + in->n_slots);
        in->n_gradients = several ? in->n : 0;
    }
    if (in->n_slots > APPLY_SLOTS_MAX || in->n_scalars > APPLY_SCALARS_MAX)
        return kernel_setup_fail(setup, "%s has %d references and %d scalars, more than %d and %d",
                                 in->rule, 1 + in->n_slots, in->n_scalars, 1 + APPLY_SLOTS_MAX,
                                 APPLY_SCALARS_MAX);
    return 0;
}

static int scalar_input(const struct apply_inputs *in, int scalar)
{
    int input = in->n * (1 + in->n_slots) + scalar;
    return input < in->gradient ? input : input + in->n_gradients;
}

static int same_shape(struct kernel_call *call, const struct apply_inputs *in, int variable,
                      int input)
{
    const struct shape *wanted = &call->in[variable]->shape, *shape = &call->in[input]->shape;
    if (shape_equal(wanted, shape))
        return 0;
    if (in->is_fused)
        return kernel_fail(call, "variable %d and its %s must have the same shape, not %s and %s",
                           variable, input < in->gradient ? "slot" : "gradient", shape_text(wanted),
                           shape_text(shape));
    return kernel_fail(call, "var and %s must have the same shape, not %s and %s",
                       call->node->op->inputs[input].name, shape_text(wanted), shape_text(shape));
}

static int check_gradient(struct kernel_call *call, const struct apply_inputs *in, int variable)
{
    int input = in->gradient + variable;
    const struct shape *updated = &call->in[variable]->shape, *shape = &call->in[input]->shape;
    if (in->first_row < 0)
        return same_shape(call, in, variable, input);
    if (update_rows_fit(updated, shape, in->first_row))
        return 0;
    return kernel_fail(call, "%s must be rows of var from row %lld on, not %s of %s",
                       call->node->op->inputs[input].name, (long long)in->first_row,
                       shape_text(shape), shape_text(updated));
}

int apply_open(struct kernel_call *call, const struct apply_inputs *in)
{
    int code = 0;
    for (int i = 0; i < in->n * in->n_slots && !code; i++)
        code = same_shape(call, in, i / in->n_slots, in->n + i);
    for (int i = 0; i < in->n_gradients && !code; i++)
        code = check_gradient(call, in, i);
    for (int k = 0; k < in->n_scalars && !code; k++) {
        int input = scalar_input(in, k);
        const struct tensor *scalar = call->in[input];
        if (tensor_count(scalar) == 1)
            continue;
        if (in->is_fused)
            code = kernel_fail(call, "scalar %d is %s", k, shape_text(&scalar->shape));
        else
            code = kernel_fail(call, "%s must be a scalar, not %s",
                               call->node->op->inputs[input].name, shape_text(&scalar->shape));
    }
    for (int i = 0; i < in->n * (1 + in->n_slots) && !code; i++)
        code =
            variable_prepare_write(call->refs[i], &call->in[i]->shape, VARIABLE_UPDATE, call->err);
    return code;
}

void apply_collect(const struct kernel_call *call, const struct apply_inputs *in, int first, int n,
                   struct apply_arguments *arguments)
{
    struct apply_arguments each = {.nesterov = in->nesterov};
    for (int k = 0; k < in->n_scalars; k++)
        each.scalars[k] = call->in[scalar_input(in, k)]->data;
    for (int i = 0; i < n; i++) {
        const struct tensor *updated = call->in[first + i];
        const struct tensor *gradient = in->n_gradients ? call->in[in->gradient + first + i] : NULL;
        int64_t rows = in->first_row < 0 ? 0 : updated->shape.dims[0];
        int64_t before = rows ? in->first_row * ((int64_t)tensor_bytes(updated) / rows) : 0;
        each.w = (char *)call->refs[first + i]->value.data + before;
        struct variable *const *slots = &call->refs[in->n + (first + i) * in->n_slots];
        for (int k = 0; k < in->n_slots; k++)
            each.slots[k] = (char *)slots[k]->value.data + before;
        each.g = gradient ? gradient->data : NULL;
        each.g_type = (gradient ? gradient : updated)->type;
        each.n = tensor_count(gradient ? gradient : updated);
        arguments[i] = each;
    }
}

int apply_finish(struct kernel_call *call, int result)
{
    for (int i = 0; i < call->n_in; i++)
        if (call->refs[i])
            variable_written(call->refs[i]);
    return !call->n_out || kernel_alias_output(call, 0, 0, NULL) ? result : call->err->code;
}
