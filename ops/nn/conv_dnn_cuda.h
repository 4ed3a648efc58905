/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions on CUDA by cuDNN: those whose padding is equal, or equivalent, on both sides, and
 * whose sizes are ints. Our filters, [y, x, in, out], are transposed into scratch memory. Only
 * files whose names end in _cuda.c include this.
 */
#ifndef TF_OPS_NN_CONV_DNN_CUDA_H
#define TF_OPS_NN_CONV_DNN_CUDA_H

#include "ops/device/dnn_cuda.h"
#include "ops/nn/conv_shapes.h"

/* How cuDNN computes a convolution. The filter is at the beginning of its scratch memory. */
struct conv_dnn {
    struct cuda_dnn_conv conv;
    struct cuda_dnn_algorithm algorithm;
    size_t workspace, bytes; /* offset of the workspace; size of all scratch memory */
};

/* False: cuDNN does not compute the convolution, which may not be empty. `exact` as in struct
 * kernel_setup. Thread-safe. */
bool conv_dnn_plan(struct cuda_device *d, const struct conv *c, bool exact, struct conv_dnn *plan);

/* `data`: image, filter and output, one of which is written; `scratch` has plan->bytes. Returns
 * KERNEL_ENQUEUED, or an error. */
int conv_dnn_run(struct kernel_call *call, const struct conv_dnn *plan, void *const data[3],
                 char *scratch);

#endif
