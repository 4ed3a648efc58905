/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts our windows to those of cuDNN, with equal zero padding on both sides. Only files whose
 * names end in _cuda.c include this.
 */
#ifndef TF_OPS_NN_WINDOW_DNN_CUDA_H
#define TF_OPS_NN_WINDOW_DNN_CUDA_H

#include "ops/device/dnn_cuda.h"
#include "ops/nn/window.h"

/* False: cuDNN has no such windows. The library's formula must give our output size: with more
 * zeros after the image than before it, it might count another window. */
bool window_dnn_axis(const struct window_axis *a, struct cuda_dnn_axis *taken);

#endif
