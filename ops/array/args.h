/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a kernel's control inputs, which are host tensors of int32 or int64.
 */
#ifndef TF_OPS_ARRAY_ARGS_H
#define TF_OPS_ARRAY_ARGS_H

#include <inttypes.h>

#include "exec/device/kernel.h"

/* Reads a scalar. Returns 0, or an error that names the argument. */
static inline int args_scalar(struct kernel_call *call, int input, const char *name, int64_t *value)
{
    const struct tensor *t = call->in[input];
    if (t->shape.rank)
        return kernel_fail(call, "%s must be a scalar, not %s", name, shape_text(&t->shape));
    *value = tensor_get_int64(t, 0);
    return 0;
}

/* Returns an axis, which counts from the end if negative. The op's shape function has checked it.
 */
static inline int args_axis(const struct kernel_call *call, int input, int rank)
{
    int axis = 0;
    shape_axis(tensor_get_int64(call->in[input], 0), rank, &axis);
    return axis;
}

#endif
