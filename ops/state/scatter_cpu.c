/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "exec/state/variable.h"
#include "ops/array/rows.h"

static int check_shapes(struct kernel_call *call)
{
    const struct shape *ref = &call->refs[0]->value.shape, *indices = &call->in[1]->shape;
    struct shape wanted = *indices;
    if (ref->rank < 1)
        return kernel_fail(call, "variable '%s' is a scalar", call->refs[0]->name);
    for (int i = 1; i < ref->rank && wanted.rank < SHAPE_RANK_MAX; i++)
        wanted.dims[wanted.rank++] = ref->dims[i];
    if (!shape_equal(&wanted, &call->in[2]->shape))
        return kernel_fail(call, "updates must be %s (indices, then a row of ref), not %s",
                           shape_text(&wanted), shape_text(&call->in[2]->shape));
    return rows_check(call, 1, ref->dims[0]);
}

/* Input i; a copy if it is the variable's own memory, whose rows change one after another. */
static int read_input(struct kernel_call *call, int i, struct tensor *t)
{
    *t = *call->in[i];
    size_t bytes = tensor_bytes(t);
    if (!bytes || t->data != call->refs[0]->value.data)
        return 0;
    void *copy = kernel_temporary(call, bytes);
    if (!copy)
        return call->err->code;
    memcpy(copy, t->data, bytes);
    *t = tensor_borrow(t->type, &t->shape, copy);
    return 0;
}

static int scatter(struct kernel_call *call, enum rows_op op)
{
    struct variable *variable = call->refs[0];
    struct shape shape = variable->value.shape;
    struct tensor indices, updates;
    if (check_shapes(call) ||
        variable_prepare_write(variable, &shape, VARIABLE_UPDATE, call->err) ||
        read_input(call, 1, &indices) || read_input(call, 2, &updates))
        return call->err->code;
    int code = rows_update(call, op, &variable->value, &indices, &updates);
    if (code)
        return code;
    variable_written(variable);
    return kernel_alias_output(call, 0, 0, NULL) ? KERNEL_DONE : call->err->code;
}

static int add_run(struct kernel_call *call)
{
    return scatter(call, ROWS_ADD);
}

static int sub_run(struct kernel_call *call)
{
    return scatter(call, ROWS_SUB);
}

static int update_run(struct kernel_call *call)
{
    return scatter(call, ROWS_SET);
}

const struct kernel_code kernel_scatter_add = {.run = add_run};
const struct kernel_code kernel_scatter_sub = {.run = sub_run};
const struct kernel_code kernel_scatter_update = {.run = update_run};
