/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU's loops of activations.
 */
#ifndef TF_OPS_NN_ACTIVATION_CPU_H
#define TF_OPS_NN_ACTIVATION_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "tensor/dtype.h"

/* n elements of x, and of y where the op has two inputs, else NULL. `out` is an input or overlaps
 * none. */
typedef void activation_loop(int64_t n, const void *x, const void *y, void *out);

/* NULL: it is no activation, or not of the type. `keeps_zero`: it makes 0 of 0, so that the padding
 * of a layout stays what it is. */
activation_loop *activation_find(const char *op, enum dtype type, bool *keeps_zero);

#endif
