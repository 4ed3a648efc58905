/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "ops/nn/lrn.h"

int lrn_prepare(struct kernel_setup *setup)
{
    struct lrn *state = mem_alloc(sizeof *state);
    state->radius = node_int(setup->node, "depth_radius");
    state->bias = node_float(setup->node, "bias");
    state->alpha = node_float(setup->node, "alpha");
    state->beta = node_float(setup->node, "beta");
    setup->state = state;
    return 0;
}

int lrn_check(struct kernel_call *call)
{
    const struct shape *shape = &call->in[0]->shape;
    if (shape->rank != 4)
        return kernel_fail(call, "images must have rank 4, not %s", shape_text(shape));
    for (int i = 1; i < call->n_in; i++)
        if (!shape_equal(shape, &call->in[i]->shape))
            return kernel_fail(call, "shapes must be equal, not %s and %s", shape_text(shape),
                               shape_text(&call->in[i]->shape));
    return 0;
}
