/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU's loops of activations.
 */
#ifndef TF_OPS_NN_ACTIVATION_CPU_H
#define TF_OPS_NN_ACTIVATION_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "tensor/dtype.h"

/* Computes n elements of x, and of y if the op has two inputs, else NULL. `out` may be an input,
 * but may not overlap one partly. */
typedef void activation_loop(int64_t n, const void *x, const void *y, void *out);

/* NULL: not an activation, or not for the type. `keeps_zero`: it maps 0 to 0, so that the padding
 * of a layout stays 0. */
activation_loop *activation_find(const char *op, enum dtype type, bool *keeps_zero);

#endif
