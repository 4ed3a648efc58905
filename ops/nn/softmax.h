/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernels of Softmax and cross entropies share on all devices: which shapes they take.
 */
#ifndef TF_OPS_NN_SOFTMAX_H
#define TF_OPS_NN_SOFTMAX_H

#include "exec/device/kernel.h"

/* Rows of n elements. */
int softmax_rows_of(struct kernel_call *call, int64_t *rows, int64_t *n);

/* The matrix that features and labels broadcast to; of class numbers: that they fit the rows. */
int cross_entropy_shape_of(struct kernel_call *call, struct shape *shape);
int sparse_cross_entropy_check(struct kernel_call *call);

/* The loss of each row of the matrix, and what flows back. */
int cross_entropy_outputs(struct kernel_call *call, const struct shape *shape, struct tensor **loss,
                          struct tensor **backprop);

#endif
