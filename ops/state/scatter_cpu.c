/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "exec/state/variable.h"
#include "ops/array/results.h"
#include "ops/array/rows.h"
#include "ops/state/writes.h"

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
    if (scatter_check_shapes(call) || rows_check(call, 1, shape.dims[0]) ||
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
