/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TF_OPS_MATH_SELECT_H
#define TF_OPS_MATH_SELECT_H

#include "tensor/shape.h"

/* The shape with which a condition is broadcast against values of shape `values` (both known as far
 * as they are): its own, or [n,1,...] for a vector that chooses rows. */
struct shape select_condition_shape(const struct shape *condition, const struct shape *values);

#endif
