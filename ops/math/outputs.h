/* SPDX-License-Identifier: Apache-2.0
 *
 * The outputs of a kernel whose shapes no attribute decides.
 */
#ifndef TF_OPS_MATH_OUTPUTS_H
#define TF_OPS_MATH_OUTPUTS_H

#include "exec/device/kernel.h"

/* Finds the shapes of all outputs of a call by its op's shape function, which checks the inputs as
 * well. It may read the values of inputs `from` to `to` - 1, which are in host memory. As all that
 * runs in a step, it may not look up attributes. Returns 0 or an error. */
int result_shapes(struct kernel_call *call, int from, int to, struct shape *shapes);

/* Makes all outputs, of these shapes: then they are in call->out. Returns output 0, or NULL with
 * call->err set. */
struct tensor *result_outputs(struct kernel_call *call, int from, int to);

#endif
