/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/nn/lrn.h"

void lrn_init(struct lrn *lrn, const struct node *node)
{
    lrn->radius = node_int(node, "depth_radius");
    lrn->bias = node_float(node, "bias");
    lrn->alpha = node_float(node, "alpha");
    lrn->beta = node_float(node, "beta");
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
