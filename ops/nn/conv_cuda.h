/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution as matrix products: the windows of images [batch, height, width, channels] are
 * unrolled into the rows of a matrix [positions, window * channels], or what flows back to such a
 * matrix is added up where it came from.
 */
#ifndef TF_OPS_NN_CONV_CUDA_H
#define TF_OPS_NN_CONV_CUDA_H

#include "ops/device/launch_cuda.h"

/* A window of `size` cells, `dilation` apart, begins at `out` places, the first one `before` cells
 * before the image. */
struct cuda_conv_axis {
    int64_t in, size, stride, dilation, before, out;
};

struct cuda_unroll {
    enum cuda_type type; /* of the images, a float */
    int64_t batch, channels;
    struct cuda_conv_axis y, x;
    void *image;
    void *matrix; /* of the type; what is rolled up is of what it is computed in */
};

/* Zeros where a window leaves the image. */
CUDA_C int cuda_unroll(const struct cuda_unroll *call, struct CUstream_st *stream);

/* The reverse: each cell of the images is the sum of what its copies hold, in a fixed order. */
CUDA_C int cuda_roll(const struct cuda_unroll *call, struct CUstream_st *stream);

#endif
