/* SPDX-License-Identifier: Apache-2.0
 *
 * What kernels of activations share on all devices.
 */
#ifndef TF_OPS_NN_ACTIVATION_H
#define TF_OPS_NN_ACTIVATION_H

#include "exec/device/kernel.h"

/* Gradients are not broadcast. */
static inline int activation_check_shapes(struct kernel_call *call)
{
    if (call->n_in < 2 || shape_equal(&call->in[0]->shape, &call->in[1]->shape))
        return 0;
    return kernel_fail(call, "operands must have the same shape, not %s and %s",
                       shape_text(&call->in[0]->shape), shape_text(&call->in[1]->shape));
}

#endif
