/* SPDX-License-Identifier: Apache-2.0
 *
 * The outputs of a kernel, by its op's shape function: what that checks of the inputs, no kernel
 * checks again.
 */
#ifndef TF_OPS_MATH_OUTPUTS_H
#define TF_OPS_MATH_OUTPUTS_H

#include "exec/device/kernel.h"

/* Finds the shapes of all outputs of a call by its op's shape function, which checks the inputs as
 * well. It may read the values of inputs `from` to `to` - 1, which are in host memory. Returns 0 or
 * an error. */
int result_shapes(struct kernel_call *call, int from, int to, struct shape *shapes);

/* Makes all outputs, of these shapes: then they are in call->out. Returns output 0, NULL with
 * call->err set, or NULL if there is none. If no values are read and the plan knew all shapes,
 * outputs are as planned: then the shape function has passed them, and is not called in each step.
 */
struct tensor *result_outputs(struct kernel_call *call, int from, int to);

/* The same of values that are nothing but sizes of outputs: where the plan knew these, they are not
 * read. */
static inline struct tensor *result_outputs_sized(struct kernel_call *call, int from, int to)
{
    return result_outputs(call, from, call->shapes_known ? from : to);
}

#endif
