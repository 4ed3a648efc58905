/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions on CUDA by cuDNN: those whose padding is the same on both sides, or seems so, and
 * whose sizes are ints. Filters, which we have as [y, x, in, out], are transposed into scratch
 * memory. Only files whose names end in _cuda.c include this.
 */
#ifndef TF_OPS_NN_CONV_DNN_CUDA_H
#define TF_OPS_NN_CONV_DNN_CUDA_H

#include "ops/device/dnn_cuda.h"
#include "ops/nn/conv_shapes.h"

/* How cuDNN computes a convolution. The filter is at the beginning of its scratch memory. */
struct conv_dnn {
    struct cuda_dnn_conv conv;
    struct cuda_dnn_algorithm algorithm;
    size_t workspace, bytes; /* its offset; of all scratch memory */
};

/* False: the convolution, which is not empty, is not cuDNN's. `exact` as of struct kernel_setup.
 * Thread-safe. */
bool conv_dnn_plan(struct cuda_device *d, const struct conv *c, bool exact, struct conv_dnn *plan);

/* The image, the filter and the output, one of which is written; `scratch` has plan->bytes.
 * KERNEL_ENQUEUED, or an error. */
int conv_dnn_run(struct kernel_call *call, const struct conv_dnn *plan, void *const data[3],
                 char *scratch);

#endif
