/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a kernel's control inputs, such as axes, sizes, indices. All are host tensors of int32 or
 * int64. Each function returns 0, or an error that names the argument.
 */
#ifndef TF_OPS_ARRAY_ARGS_H
#define TF_OPS_ARRAY_ARGS_H

#include <inttypes.h>

#include "exec/device/kernel.h"

static inline int args_scalar(struct kernel_call *call, int input, const char *name, int64_t *value)
{
    const struct tensor *t = call->in[input];
    if (t->shape.rank)
        return kernel_fail(call, "%s must be a scalar, not %s", name, shape_text(&t->shape));
    *value = tensor_get_int64(t, 0);
    return 0;
}

/* Reads an axis, which counts from the end if negative. */
static inline int args_axis(struct kernel_call *call, int input, const char *name, int rank,
                            int *axis)
{
    int64_t value = 0;
    if (args_scalar(call, input, name, &value))
        return call->err->code;
    if (!shape_axis(value, rank, axis))
        return kernel_fail(call, "%s %" PRId64 " is outside [%d, %d)", name, value, -rank, rank);
    return 0;
}

/* Reads a vector of exactly n elements. */
static inline int args_vector(struct kernel_call *call, int input, const char *name, int n,
                              int64_t *values)
{
    const struct tensor *t = call->in[input];
    if (t->shape.rank != 1 || t->shape.dims[0] != n)
        return kernel_fail(call, "%s must be a vector of %d elements, not %s", name, n,
                           shape_text(&t->shape));
    for (int i = 0; i < n; i++)
        values[i] = tensor_get_int64(t, i);
    return 0;
}

#endif
