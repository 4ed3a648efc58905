/* SPDX-License-Identifier: Apache-2.0
 *
 * How FusedElementwise writes down what it computes, for its kernels on all devices.
 */
#ifndef TF_OPS_MATH_FUSED_H
#define TF_OPS_MATH_FUSED_H

#include "tensor/shape.h"

#define FUSED_OPERANDS 2 /* of each op; -1: it has one less */

/* Sets the output's shape. ERR_DATA: an input has neither that nor one element. */
int fused_check_shapes(const struct shape *const *in, int n, struct shape *out, struct error *err);

#endif
