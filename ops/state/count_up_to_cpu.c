/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "base/memory.h"
#include "exec/device/kernel.h"
#include "exec/state/variable.h"

static int count_prepare(struct kernel_setup *setup)
{
    int64_t *limit = mem_alloc(sizeof *limit);
    *limit = node_int(setup->node, "limit");
    setup->state = limit;
    return 0;
}

static int count_run(struct kernel_call *call)
{
    struct variable *variable = call->refs[0];
    int64_t limit = *(const int64_t *)call->state;
    if (variable->value.shape.rank != 0)
        return kernel_fail(call, "variable '%s' must be a scalar, not %s", variable->name,
                           shape_text(&variable->value.shape));
    int64_t value = tensor_get_int64(&variable->value, 0);
    if (value >= limit)
        return kernel_fail(call, "reached limit of %" PRId64, limit);
    struct tensor *out = kernel_alloc_output(call, 0, &SHAPE_SCALAR);
    if (!out || variable_prepare_write(variable, &SHAPE_SCALAR, VARIABLE_UPDATE, call->err))
        return call->err->code;
    tensor_set_int64(out, 0, value);
    tensor_set_int64(&variable->value, 0, value + 1);
    variable_written(variable);
    return KERNEL_DONE;
}

const struct kernel_code kernel_count_up_to = {.prepare = count_prepare, .run = count_run};
