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

static int run(struct kernel_call *call)
{
    struct variable *variable = call->refs[0];
    struct shape shape = variable->value.shape;
    struct tensor indices, updates;
    if (scatter_check_shapes(call) || rows_check(call, 1, shape.dims[0]) ||
        variable_prepare_write(variable, &shape, VARIABLE_UPDATE, call->err) ||
        read_input(call, 1, &indices) || read_input(call, 2, &updates))
        return call->err->code;
    int code = rows_update(call, (enum rows_op)call->form, &variable->value, &indices, &updates);
    if (code)
        return code;
    variable_written(variable);
    return kernel_alias_output(call, 0, 0, NULL) ? KERNEL_DONE : call->err->code;
}

const struct kernel_code kernel_scatter_add = {.run = run, .form = ROWS_ADD};
const struct kernel_code kernel_scatter_sub = {.run = run, .form = ROWS_SUB};
const struct kernel_code kernel_scatter_update = {.run = run, .form = ROWS_SET};
