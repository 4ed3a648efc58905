/* SPDX-License-Identifier: Apache-2.0
 *
 * How FusedElementwise writes down what it computes, for its kernels on all devices.
 */
#ifndef TF_OPS_MATH_FUSED_H
#define TF_OPS_MATH_FUSED_H

#include "graph/graph.h"
#include "tensor/shape.h"

#define FUSED_OPERANDS 2 /* of each op; -1: it has one less */

/* Of a node's attribute `operands`, and a shape for each of its inputs. Sets the output's.
 * ERR_DATA: an input has neither that nor one element; or an op has scalars alone, where the output
 * is none.
 */
int fused_check_shapes(const struct attr_value *operands, const struct shape *const *in, int n_in,
                       struct shape *out, struct error *err);

#endif
