/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by declarations and kernels on all devices: which shapes fit, and the shapes of results.
 */
#ifndef TF_OPS_MATH_RESULTS_H
#define TF_OPS_MATH_RESULTS_H

#include "ops/array/args.h"
#include "ops/math/outputs.h"

/* ---- reductions: the meaning of reduction_indices ---- */

/* Reads the axes in a scalar or vector of int32 or int64, as bits. ERR_DATA: one is outside [-rank,
 * rank) or is repeated. */
int reduce_axes(const struct tensor *indices, int rank, unsigned *axes, struct error *err);

/* Returns the result's shape. The input's rank is known; its dimensions need not be. */
struct shape reduce_shape(const struct shape *input, unsigned axes, bool keep_dims);

/* ---- Select ---- */

/* Returns the shape with which a condition is broadcast against values of shape `values` (both may
 * be partly unknown): its own, or [n,1,...] for a vector that selects rows. */
struct shape select_condition_shape(const struct shape *condition, const struct shape *values);

/* ---- ArgMax and ArgMin: the output, and which axis it lacks; NULL with call->err set ---- */

static inline struct tensor *arg_output(struct kernel_call *call, int *axis)
{
    const struct shape *x = &call->in[0]->shape;
    struct tensor *out = result_outputs(call, 1, 2);
    if (!out)
        return NULL;
    *axis = args_axis(call, 1, x->rank);
    if (x->dims[*axis] || !tensor_count(out))
        return out;
    kernel_fail(call, "dimension %d of %s has no elements", *axis, shape_text(x));
    return NULL;
}

#endif
