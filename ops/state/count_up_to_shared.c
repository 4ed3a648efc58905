/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "exec/state/variable.h"
#include "ops/state/count_up_to.h"

int count_up_to_prepare(struct kernel_setup *setup)
{
    int64_t *limit = mem_alloc(sizeof *limit);
    *limit = node_int(setup->node, "limit");
    setup->state = limit;
    return 0;
}

int count_up_to_check(struct kernel_call *call)
{
    const struct variable *variable = call->refs[0];
    if (variable->value.shape.rank != 0)
        return kernel_fail(call, "variable '%s' must be a scalar, not %s", variable->name,
                           shape_text(&variable->value.shape));
    return 0;
}
