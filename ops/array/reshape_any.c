/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels that see their input's memory with another shape.
 */
#include "base/memory.h"
#include "exec/device/kernel.h"
#include "ops/array/reshape.h"
#include "ops/math/outputs.h"

static int finish(struct kernel_call *call, int code, const struct shape *shape)
{
    if (code)
        return code;
    return kernel_alias_output(call, 0, 0, shape) ? KERNEL_DONE : call->err->code;
}

static int reshape_run(struct kernel_call *call)
{
    struct shape shape;
    return finish(call, result_shapes(call, 1, 2, &shape), &shape);
}

/* ---- Squeeze ---- */

struct squeeze {
    const struct attr_value *dims;
};

static int squeeze_prepare(struct kernel_setup *setup)
{
    struct squeeze *squeeze = setup->state = mem_alloc(sizeof *squeeze);
    squeeze->dims = node_attr(setup->node, "squeeze_dims");
    return kernel_prepare_alias(setup);
}

static int squeeze_run(struct kernel_call *call)
{
    const struct squeeze *squeeze = call->state;
    struct shape shape = SHAPE_SCALAR;
    return finish(call,
                  reshape_squeeze(&call->in[0]->shape, squeeze->dims->ints, squeeze->dims->n,
                                  &shape, call->err),
                  &shape);
}

const struct kernel_code kernel_reshape = {.prepare = kernel_prepare_alias, .run = reshape_run};
const struct kernel_code kernel_expand_dims = {.prepare = kernel_prepare_alias, .run = reshape_run};
const struct kernel_code kernel_squeeze = {.prepare = squeeze_prepare, .run = squeeze_run};
