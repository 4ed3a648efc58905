/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by declarations and kernels on all devices: which shapes fit, and the shapes of results.
 */
#ifndef TF_OPS_MATH_RESULTS_H
#define TF_OPS_MATH_RESULTS_H

#include "ops/array/args.h"

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

/* ---- ArgMax and ArgMin: which axis, and the shape without it ---- */

static inline int arg_result(struct kernel_call *call, int *axis, struct shape *shape)
{
    const struct shape *x = &call->in[0]->shape;
    if (args_axis(call, 1, "dimension", x->rank, axis))
        return call->err->code;
    *shape = (struct shape){.rank = 0};
    for (int i = 0; i < x->rank; i++)
        if (i != *axis)
            shape->dims[shape->rank++] = x->dims[i];
    if (!x->dims[*axis] && shape_count(shape))
        return kernel_fail(call, "dimension %d of %s has no elements", *axis, shape_text(x));
    return 0;
}

/* ---- AddN ---- */

/* Checks that all inputs have one shape. */
static inline int addn_check_shapes(struct kernel_call *call)
{
    const struct shape *shape = &call->in[0]->shape;
    for (int i = 1; i < call->n_in; i++)
        if (!shape_equal(shape, &call->in[i]->shape))
            return kernel_fail(call, "input %d is %s, those before %s", i,
                               shape_text(&call->in[i]->shape), shape_text(shape));
    return 0;
}

/* ---- FusedElementwise, as its attributes describe it ---- */

#define FUSED_OPERANDS 2 /* per op; -1: it has one operand less */

/* Takes a node's attribute `operands`, and its inputs' shapes; sets the output's. ERR_DATA: an
 * input has neither that shape nor one element; or an op has only scalars although the output is
 * not one.
 */
int fused_check_shapes(const struct attr_value *operands, const struct shape *const *in, int n_in,
                       struct shape *out, struct error *err);

#endif
