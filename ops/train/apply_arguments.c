/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/train/apply.h"

#include "exec/state/variable.h"
#include "graph/update_rows.h"

int apply_find_inputs(struct kernel_setup *setup, struct apply_inputs *form)
{
    const struct op *op = setup->node->op;
    int n[3] = {0};
    for (int i = 0; i < op->n_inputs; i++) {
        enum apply_role role = op->inputs[i].is_ref             ? APPLY_REFERENCE
                               : i == op->def->descent.gradient ? APPLY_GRADIENT
                                                                : APPLY_SCALAR;
        if (i < (int)(sizeof form->roles / sizeof *form->roles))
            form->roles[i] = role;
        n[role]++;
    }
    if (n[APPLY_REFERENCE] < 1 || n[APPLY_REFERENCE] > 1 + APPLY_SLOTS_MAX ||
        n[APPLY_SCALAR] > APPLY_SCALARS_MAX)
        return kernel_setup_fail(setup, "%s has %d references and %d scalars, more than %d and %d",
                                 op->def->name, n[APPLY_REFERENCE], n[APPLY_SCALAR],
                                 1 + APPLY_SLOTS_MAX, APPLY_SCALARS_MAX);
    form->first_row = update_first_row(setup->node);
    const struct attr_value *nesterov = node_attr(setup->node, "use_nesterov");
    form->nesterov = nesterov && nesterov->b;
    return 0;
}

static int same_shape(struct kernel_call *call, int i)
{
    if (shape_equal(&call->in[0]->shape, &call->in[i]->shape))
        return 0;
    return kernel_fail(call, "var and %s must have the same shape, not %s and %s",
                       call->node->op->inputs[i].name, shape_text(&call->in[0]->shape),
                       shape_text(&call->in[i]->shape));
}

static int open_reference(struct kernel_call *call, int i, void **data)
{
    struct variable *variable = call->refs[i];
    if (variable_prepare_write(variable, &call->in[i]->shape, VARIABLE_UPDATE, call->err))
        return call->err->code;
    *data = variable->value.data;
    return 0;
}

int apply_collect(struct kernel_call *call, const struct apply_inputs *form,
                  struct apply_arguments *arguments)
{
    const struct tensor *updated = call->in[0];
    int64_t rows = form->first_row < 0 ? 0 : updated->shape.dims[0];
    int64_t before = rows ? form->first_row * ((int64_t)tensor_bytes(updated) / rows) : 0;
    int n_refs = 0, n_scalars = 0, code = 0;
    *arguments = (struct apply_arguments){.nesterov = form->nesterov};
    for (int i = 0; i < call->n_in && !code; i++) {
        const struct tensor *in = call->in[i];
        void **data = n_refs ? &arguments->slots[n_refs - 1] : &arguments->w;
        switch (form->roles[i]) {
        case APPLY_SCALAR:
            if (tensor_count(in) != 1)
                return kernel_fail(call, "%s must be a scalar, not %s",
                                   call->node->op->inputs[i].name, shape_text(&in->shape));
            arguments->scalars[n_scalars++] = in->data;
            break;
        case APPLY_GRADIENT: /* of the whole variable, or of some of its rows */
            if (form->first_row < 0)
                code = same_shape(call, i);
            else if (!update_rows_fit(&updated->shape, &in->shape, form->first_row))
                code = kernel_fail(call, "%s must be rows of var from row %lld on, not %s of %s",
                                   call->node->op->inputs[i].name, (long long)form->first_row,
                                   shape_text(&in->shape), shape_text(&updated->shape));
            arguments->g = in->data;
            arguments->g_type = in->type;
            arguments->n = tensor_count(in);
            break;
        case APPLY_REFERENCE:
            code = same_shape(call, i) || open_reference(call, i, data) ? call->err->code : 0;
            *data = code ? NULL : (char *)*data + before;
            n_refs++;
        }
    }
    return code;
}

static void mark_written(struct kernel_call *call)
{
    for (int i = 0; i < call->n_in; i++)
        if (call->refs[i])
            variable_written(call->refs[i]);
}

int apply_finish(struct kernel_call *call, int result)
{
    mark_written(call);
    return kernel_alias_output(call, 0, 0, NULL) ? result : call->err->code;
}

/* ---- FusedApply ---- */

struct apply_batch apply_batch_of(const struct node *node)
{
    const struct attr_value *several = node_attr(node, "N");
    int n = several ? (int)several->i : 1;
    return (struct apply_batch){
        n,        (int)node_int(node, "M") / n,    (int)node_int(node, "S"),
        !several, node_bool(node, "use_nesterov"), node_attr(node, "rule")->s};
}

static int slot_input(const struct apply_batch *in, int variable, int slot)
{
    return in->n + variable * in->n_slots + slot;
}

static int gradient_input(const struct apply_batch *in, int variable)
{
    return in->n + in->n * in->n_slots + variable;
}

static int scalar_input(const struct apply_batch *in, int scalar)
{
    return gradient_input(in, in->computes ? 0 : in->n) + scalar;
}

static int check_fused(struct kernel_call *call, int variable, const char *what, int input)
{
    if (shape_equal(&call->in[variable]->shape, &call->in[input]->shape))
        return 0;
    return kernel_fail(call, "variable %d and its %s must have the same shape, not %s and %s",
                       variable, what, shape_text(&call->in[variable]->shape),
                       shape_text(&call->in[input]->shape));
}

int apply_batch_open(struct kernel_call *call, const struct apply_batch *in)
{
    void *data;
    int code = 0;
    for (int i = 0; i < in->n && !code; i++) {
        for (int k = 0; k < in->n_slots && !code; k++)
            code = check_fused(call, i, "slot", slot_input(in, i, k));
        if (!code && !in->computes)
            code = check_fused(call, i, "gradient", gradient_input(in, i));
    }
    for (int k = 0; k < in->n_scalars && !code; k++)
        if (tensor_count(call->in[scalar_input(in, k)]) != 1)
            code = kernel_fail(call, "scalar %d is %s", k,
                               shape_text(&call->in[scalar_input(in, k)]->shape));
    for (int i = 0; i < gradient_input(in, 0) && !code; i++)
        code = open_reference(call, i, &data);
    return code;
}

void apply_batch_collect(const struct kernel_call *call, const struct apply_batch *in, int first,
                         int n, struct apply_arguments *arguments)
{
    struct apply_arguments each = {
        .nesterov = in->nesterov,
        .g_type = call->in[in->computes ? 0 : gradient_input(in, first)]->type};
    for (int k = 0; k < in->n_scalars; k++)
        each.scalars[k] = call->in[scalar_input(in, k)]->data;
    for (int i = 0; i < n; i++) {
        each.w = call->refs[first + i]->value.data;
        for (int k = 0; k < in->n_slots; k++)
            each.slots[k] = call->refs[slot_input(in, first + i, k)]->value.data;
        each.g = in->computes ? NULL : call->in[gradient_input(in, first + i)]->data;
        each.n = tensor_count(call->in[first + i]);
        arguments[i] = each;
    }
}

int apply_batch_finish(struct kernel_call *call, int result)
{
    mark_written(call);
    return result;
}
