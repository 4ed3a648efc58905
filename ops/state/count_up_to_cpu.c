/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/device/step_block.h"
#include "exec/state/variable.h"
#include "ops/state/writes.h"

static int count_run(struct kernel_call *call)
{
    struct variable *variable = call->refs[0];
    int64_t limit = *(const int64_t *)call->state;
    if (count_up_to_check(call))
        return call->err->code;
    int64_t value = tensor_get_int64(&variable->value, 0);
    if (value >= limit)
        return kernel_fault(call, &(struct fault){.code = FAULT_LIMIT, .limit = limit});
    struct tensor *out = kernel_alloc_output(call, 0, &SHAPE_SCALAR);
    if (!out || variable_prepare_write(variable, &SHAPE_SCALAR, VARIABLE_UPDATE, call->err))
        return call->err->code;
    tensor_set_int64(out, 0, value);
    tensor_set_int64(&variable->value, 0, value + 1);
    variable_written(variable);
    return KERNEL_DONE;
}

const struct kernel_code kernel_count_up_to = {.prepare = count_up_to_prepare, .run = count_run};
