/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernels of batch normalization on all devices check.
 */
#ifndef TF_OPS_NN_BATCH_NORM_SHAPES_H
#define TF_OPS_NN_BATCH_NORM_SHAPES_H

#include "exec/device/kernel.h"

struct norm {
    double epsilon;
    bool training, nchw;
};

void norm_init(struct norm *norm, const struct node *node);

/* Of FusedBatchNorm, and of its gradient: that images have rank 4, and that each vector has one
 * element per channel, or none where there is to be none. ERR_DATA. */
int norm_check(struct kernel_call *call, const struct norm *norm);
int norm_grad_check(struct kernel_call *call, const struct norm *norm);

/* Makes five outputs: one like the image, and vectors of so many elements. */
int norm_outputs(struct kernel_call *call, const struct shape *image, const int64_t sizes[4],
                 void *out[5]);

/* Of an image that was checked. */
int64_t norm_channels(const struct norm *norm, const struct shape *image);

#endif
