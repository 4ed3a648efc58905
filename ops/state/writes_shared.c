/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/state/writes.h"

#include "base/memory.h"
#include "exec/state/variable.h"

/* ---- whole variables ---- */

int assign_prepare(struct kernel_setup *setup)
{
    bool *validate = setup->state = mem_alloc(sizeof *validate);
    *validate = node_bool(setup->node, "validate_shape");
    return 0;
}

enum variable_write assign_how(const struct kernel_call *call)
{
    return *(const bool *)call->state ? VARIABLE_OVERWRITE : VARIABLE_RESHAPE;
}

bool assign_itself(struct kernel_call *call)
{
    struct tensor *own = &call->refs[0]->value;
    const struct tensor *value = call->in[1];
    bool fits = assign_how(call) == VARIABLE_RESHAPE || shape_equal(&own->shape, &value->shape);
    if (!own->data || own->data != value->data || !fits)
        return false;
    own->shape = value->shape;
    return true;
}

struct variable *assign_begin_update(struct kernel_call *call)
{
    struct variable *variable = call->refs[0];
    const struct shape *shape = &call->in[1]->shape;
    if (!shape_equal(&variable->value.shape, shape))
        kernel_fail(call, "variable '%s' is %s, the value %s", variable->name,
                    shape_text(&variable->value.shape), shape_text(shape));
    else if (!variable_prepare_write(variable, shape, VARIABLE_UPDATE, call->err))
        return variable;
    return NULL;
}

int assign_finish(struct kernel_call *call, int result)
{
    variable_written(call->refs[0]);
    return kernel_alias_output(call, 0, 0, NULL) ? result : call->err->code;
}

/* ---- CountUpTo ---- */

int count_up_to_prepare(struct kernel_setup *setup)
{
    int64_t *limit = setup->state = mem_alloc(sizeof *limit);
    *limit = node_int(setup->node, "limit");
    return 0;
}
