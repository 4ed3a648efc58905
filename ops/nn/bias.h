/* SPDX-License-Identifier: Apache-2.0
 *
 * What kernels of BiasAdd and BiasAddGrad share on all devices.
 */
#ifndef TF_OPS_NN_BIAS_H
#define TF_OPS_NN_BIAS_H

#include "exec/device/kernel.h"

/* That input 0 has channels. */
static inline int bias_check_value(struct kernel_call *call, bool nchw)
{
    const struct shape *shape = &call->in[0]->shape;
    if (shape->rank >= (nchw ? 3 : 2))
        return 0;
    return kernel_fail(call, "value must have at least rank %d, not %s", nchw ? 3 : 2,
                       shape_text(shape));
}

static inline int bias_check_vector(struct kernel_call *call, int64_t channels)
{
    const struct shape *bias = &call->in[1]->shape;
    if (bias->rank == 1 && bias->dims[0] == channels)
        return 0;
    return kernel_fail(call, "bias must be a vector of %lld channels, not %s", (long long)channels,
                       shape_text(bias));
}

#endif
