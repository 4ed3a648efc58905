/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling, with the CPU's bits. Images are planes [height, width, block]: NHWC has one plane for
 * each image, its block all channels, NCHW one of single elements for each channel.
 */
#ifndef TF_OPS_NN_POOL_CUDA_H
#define TF_OPS_NN_POOL_CUDA_H

#include "ops/device/launch_cuda.h"

enum cuda_pool_form {
    CUDA_MAX_POOL,
    CUDA_MAX_POOL_GRAD,
    CUDA_MAX_POOL_GRAD_GRAD,
    CUDA_AVG_POOL, /* means are of floats alone */
    CUDA_AVG_POOL_GRAD,
};

/* A window of `size` cells begins at `out` places, the first one `before` cells before the image.
 */
struct cuda_window {
    int64_t in, size, stride, before, out;
};

struct cuda_pool {
    enum cuda_pool_form form;
    enum cuda_type type; /* a number */
    int64_t planes, block;
    struct cuda_window y, x;
    const void *image;    /* not of AVG_POOL_GRAD */
    const void *output;   /* of gradients of the largest: what MaxPool made of the image */
    const void *gradient; /* like the output; of MAX_POOL_GRAD_GRAD like the image */
    void *result;
};

CUDA_C int cuda_pool(const struct cuda_pool *call, struct CUstream_st *stream);

#endif
