/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels whose output is their input's memory, perhaps seen with another shape.
 */
#include "ops/math/outputs.h"

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

/* Of Reshape, ExpandDims and Squeeze. The last has no input that says the shape: it is as planned
 * where the plan knew all shapes. */
static int reshape_run(struct kernel_call *call)
{
    struct shape shape = call->node->outputs[0].shape;
    bool is_planned = call->shapes_known && call->n_in == 1;
    if (!is_planned && result_shapes(call, 1, call->n_in, &shape))
        return call->err->code;
    return kernel_alias_output(call, 0, 0, &shape) ? KERNEL_DONE : call->err->code;
}

const struct kernel_code kernel_identity = {.prepare = kernel_prepare_alias, .run = alias_run};
const struct kernel_code kernel_default = {.prepare = kernel_prepare_alias, .run = default_run};
const struct kernel_code kernel_reshape = {.prepare = kernel_prepare_alias, .run = reshape_run};
const struct kernel_code kernel_expand_dims = {.prepare = kernel_prepare_alias, .run = reshape_run};
const struct kernel_code kernel_squeeze = {.prepare = kernel_prepare_alias, .run = reshape_run};
