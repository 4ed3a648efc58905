/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels whose output is their input's memory.
 */
#include "exec/device/kernel.h"

static int alias_run(struct kernel_call *call)
{
    return kernel_alias_output(call, 0, 0, NULL) ? KERNEL_DONE : call->err->code;
}

/* A default may have a shape that does not fit the output's declared shape. */
static int default_run(struct kernel_call *call)
{
    const struct shape *shape = &call->node->outputs[0].shape, *its = &call->in[0]->shape;
    if (!shape_compatible(its, shape))
        return kernel_fail(call, "the default has shape %s, which is not %s", shape_text(its),
                           shape_text(shape));
    return alias_run(call);
}

const struct kernel_code kernel_identity = {.prepare = kernel_prepare_alias, .run = alias_run};
const struct kernel_code kernel_default = {.prepare = kernel_prepare_alias, .run = default_run};
