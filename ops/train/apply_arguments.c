/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/train/apply.h"

#include <string.h>

#include "exec/state/variable.h"

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

static int find_scalar(struct kernel_call *call, int i, const void **scalar)
{
    const struct tensor *in = call->in[i];
    if (tensor_count(in) != 1)
        return kernel_fail(call, "%s must be a scalar, not %s", call->node->op->inputs[i].name,
                           shape_text(&in->shape));
    *scalar = in->data;
    return 0;
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
        if (same_shape(call, i))
            return call->err->code;
        if (is_gradient(call->node, i)) {
            arguments->g = call->in[i]->data;
            continue;
        }
        if (open_reference(call, i, n_refs ? &arguments->slots[n_refs - 1] : &arguments->w))
            return call->err->code;
        n_refs++;
    }
    return 0;
}

int apply_finish(struct kernel_call *call, int result)
{
    for (int i = 0; i < call->n_in; i++)
        if (call->refs[i])
            variable_written(call->refs[i]);
    return kernel_alias_output(call, 0, 0, NULL) ? result : call->err->code;
}
