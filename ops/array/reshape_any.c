/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels that see their input's memory with another shape.
 */
#include "ops/math/outputs.h"

static int reshape_run(struct kernel_call *call)
{
    struct shape shape;
    if (result_shapes(call, 1, call->n_in, &shape) || !kernel_alias_output(call, 0, 0, &shape))
        return call->err->code;
    return KERNEL_DONE;
}

const struct kernel_code kernel_reshape = {.prepare = kernel_prepare_alias, .run = reshape_run};
const struct kernel_code kernel_expand_dims = {.prepare = kernel_prepare_alias, .run = reshape_run};
const struct kernel_code kernel_squeeze = {.prepare = kernel_prepare_alias, .run = reshape_run};
