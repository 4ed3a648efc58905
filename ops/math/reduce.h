/* SPDX-License-Identifier: Apache-2.0
 *
 * What all reductions share: the meaning of reduction_indices.
 */
#ifndef TF_OPS_MATH_REDUCE_H
#define TF_OPS_MATH_REDUCE_H

#include "tensor/tensor.h"

/* The axes named by a scalar or vector of int32 or int64, as bits. ERR_DATA when one is outside
 * [-rank, rank) or named twice. */
int reduce_axes(const struct tensor *indices, int rank, unsigned *axes, struct error *err);

/* The result's shape. The input's rank is known; its dimensions need not be. */
struct shape reduce_shape(const struct shape *input, unsigned axes, bool keep_dims);

#endif
