/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/train/apply.h"

#include <string.h>

#include "exec/state/variable.h"
#include "graph/update_rows.h"

static bool is_gradient(const struct node *node, int input)
{
    const char *name = node->op->inputs[input].name;
    return !strcmp(name, "grad") || !strcmp(name, "delta");
}

static bool is_scalar(const struct node *node, int input)
{
    return !node->op->inputs[input].is_ref && !is_gradient(node, input);
}

int apply_check_arguments(struct kernel_setup *setup)
{
    const struct op *op = setup->node->op;
    int n_refs = 0, n_scalars = 0;
    for (int i = 0; i < op->n_inputs; i++) {
        n_refs += op->inputs[i].is_ref;
        n_scalars += is_scalar(setup->node, i);
    }
    if (n_refs < 1 || n_refs > 1 + APPLY_SLOTS_MAX || n_scalars > APPLY_SCALARS_MAX)
        return kernel_setup_fail(setup, "%s has %d references and %d scalars, more than %d and %d",
                                 op->def->name, n_refs, n_scalars, 1 + APPLY_SLOTS_MAX,
                                 APPLY_SCALARS_MAX);
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

/* The gradient is of all of the variable, or of some of its rows. */
static int check_gradient(struct kernel_call *call, int i)
{
    const struct shape *updated = &call->in[0]->shape, *shape = &call->in[i]->shape;
    int64_t first = update_first_row(call->node);
    if (first < 0)
        return same_shape(call, i);
    if (update_rows_fit(updated, shape, first))
        return 0;
    return kernel_fail(call, "%s must be rows of var from row %lld on, not %s of %s",
                       call->node->op->inputs[i].name, (long long)first, shape_text(shape),
                       shape_text(updated));
}

static int find_scalar(struct kernel_call *call, int i, const void **scalar)
{
    const struct tensor *in = call->in[i];
    if (tensor_count(in) != 1)
        return kernel_fail(call, "%s must be a scalar, not %s", call->node->op->inputs[i].name,
                           shape_text(&in->shape));
    *scalar = in->data;
    return 0;
}

/* Where the gradient's rows of it begin. */
static int64_t bytes_before_rows(const struct kernel_call *call)
{
    const struct tensor *updated = call->in[0];
    int64_t first = update_first_row(call->node), rows = first < 0 ? 0 : updated->shape.dims[0];
    return rows ? first * ((int64_t)tensor_bytes(updated) / rows) : 0;
}

static int open_reference(struct kernel_call *call, int i, void **data)
{
    struct variable *variable = call->refs[i];
    if (variable_prepare_write(variable, &call->in[i]->shape, VARIABLE_UPDATE, call->err))
        return call->err->code;
    *data = variable->value.data;
    return 0;
}

int apply_collect(struct kernel_call *call, struct apply_arguments *arguments)
{
    int n_refs = 0, n_scalars = 0;
    *arguments = (struct apply_arguments){.nesterov = node_is(call->node, "ApplyMomentum") &&
                                                      node_bool(call->node, "use_nesterov")};
    for (int i = 0; i < call->n_in; i++) {
        if (is_scalar(call->node, i)) {
            if (find_scalar(call, i, &arguments->scalars[n_scalars++]))
                return call->err->code;
            continue;
        }
        bool is_of_rows = is_gradient(call->node, i);
        if (is_of_rows ? check_gradient(call, i) : same_shape(call, i))
            return call->err->code;
        if (is_of_rows) {
            arguments->g = call->in[i]->data;
            arguments->n = tensor_count(call->in[i]);
            continue;
        }
        void **data = n_refs ? &arguments->slots[n_refs - 1] : &arguments->w;
        if (open_reference(call, i, data))
            return call->err->code;
        *data = (char *)*data + bytes_before_rows(call);
        n_refs++;
    }
    return 0;
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

/* Its inputs are variables, slots variable by variable, gradients, scalars. */
struct fused_inputs {
    int n, n_slots, n_scalars; /* slots of each variable */
};

static struct fused_inputs inputs_of(const struct node *node)
{
    int n = (int)node_int(node, "N");
    return (struct fused_inputs){n, (int)node_int(node, "M") / n, (int)node_int(node, "S")};
}

static int slot_input(const struct fused_inputs *in, int variable, int slot)
{
    return in->n + variable * in->n_slots + slot;
}

static int gradient_input(const struct fused_inputs *in, int variable)
{
    return in->n + in->n * in->n_slots + variable;
}

static int scalar_input(const struct fused_inputs *in, int scalar)
{
    return gradient_input(in, in->n) + scalar;
}

const char *apply_fused_rule(const struct node *node)
{
    return node_attr(node, "rule")->s;
}

static int check_fused(struct kernel_call *call, int variable, const char *what, int input)
{
    if (shape_equal(&call->in[variable]->shape, &call->in[input]->shape))
        return 0;
    return kernel_fail(call, "variable %d and its %s must have the same shape, not %s and %s",
                       variable, what, shape_text(&call->in[variable]->shape),
                       shape_text(&call->in[input]->shape));
}

static int check_all_fused(struct kernel_call *call, const struct fused_inputs *in)
{
    int code = 0;
    for (int i = 0; i < in->n && !code; i++) {
        for (int k = 0; k < in->n_slots && !code; k++)
            code = check_fused(call, i, "slot", slot_input(in, i, k));
        if (!code)
            code = check_fused(call, i, "gradient", gradient_input(in, i));
    }
    for (int k = 0; k < in->n_scalars && !code; k++)
        if (tensor_count(call->in[scalar_input(in, k)]) != 1)
            code = kernel_fail(call, "scalar %d is %s", k,
                               shape_text(&call->in[scalar_input(in, k)]->shape));
    return code;
}

int apply_fused_open(struct kernel_call *call)
{
    struct fused_inputs in = inputs_of(call->node);
    void *data;
    int code = check_all_fused(call, &in);
    for (int i = 0; i < gradient_input(&in, 0) && !code; i++)
        code = open_reference(call, i, &data);
    return code;
}

void apply_fused_collect(const struct kernel_call *call, int first, int n,
                         struct apply_arguments *arguments)
{
    struct fused_inputs in = inputs_of(call->node);
    struct apply_arguments each = {.nesterov = node_bool(call->node, "use_nesterov")};
    for (int k = 0; k < in.n_scalars; k++)
        each.scalars[k] = call->in[scalar_input(&in, k)]->data;
    for (int i = 0; i < n; i++) {
        each.w = call->refs[first + i]->value.data;
        for (int k = 0; k < in.n_slots; k++)
            each.slots[k] = call->refs[slot_input(&in, first + i, k)]->value.data;
        each.g = call->in[gradient_input(&in, first + i)]->data;
        each.n = tensor_count(call->in[first + i]);
        arguments[i] = each;
    }
}

int apply_fused_finish(struct kernel_call *call, int result)
{
    mark_written(call);
    return result;
}
