/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TF_OPS_MATH_ADDN_H
#define TF_OPS_MATH_ADDN_H

#include "exec/device/kernel.h"

/* That all inputs have one shape. */
static inline int addn_check_shapes(struct kernel_call *call)
{
    const struct shape *shape = &call->in[0]->shape;
    for (int i = 1; i < call->n_in; i++)
        if (!shape_equal(shape, &call->in[i]->shape))
            return kernel_fail(call, "input %d is %s, those before %s", i,
                               shape_text(&call->in[i]->shape), shape_text(shape));
    return 0;
}

#endif
