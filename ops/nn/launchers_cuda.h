/* SPDX-License-Identifier: Apache-2.0
 *
 * The launchers of the .cu files of neural networks, and their arguments.
 */
#ifndef TF_OPS_NN_LAUNCHERS_CUDA_H
#define TF_OPS_NN_LAUNCHERS_CUDA_H

#include <stdbool.h>
#include <stddef.h>

#include "ops/device/launch_cuda.h"
#include "ops/nn/pool_shapes.h"

/* ---- conv ----
 *
 * Convolution as matrix products: the windows of images [batch, height, width, channels] are
 * unrolled into the rows of a matrix [positions, groups, window * channels of a group], or the
 * gradient of such a matrix is summed into the cells it came from. */

struct cuda_unroll {
    enum cuda_type type; /* of the images, a float */
    int64_t batch, channels, groups;
    struct window_axis y, x;
    void *image;
    void *matrix; /* of the type; for rolling, of the type that it is computed in */
};

/* Unrolls, with zeros where a window leaves the image. */
CUDA_C int cuda_unroll(const struct cuda_unroll *call, struct CUstream_st *stream);

/* The reverse: each cell of the images is the sum of its copies, in a fixed order. */
CUDA_C int cuda_roll(const struct cuda_unroll *call, struct CUstream_st *stream);

/* ---- pool ----
 *
 * Pooling, with the CPU's bits. Images are planes [height, width, block]: NHWC has one plane per
 * image, with a block of all channels; NCHW one per channel, with blocks of one element. */

struct cuda_pool {
    enum pool_kind kind;
    enum cuda_type type; /* a number; for means and places a float */
    bool masked;         /* as in struct pooling */
    int64_t planes, block;
    struct window_axis y, x;
    const void *image;    /* not for POOL_AVG_GRAD and POOL_PLACE_GRAD */
    const void *output;   /* for POOL_MAX_GRAD and POOL_MAX_GRAD_GRAD: MaxPool's */
    const void *gradient; /* like the output; for POOL_MAX_GRAD_GRAD like the image */
    uint8_t *place;       /* written for POOL_WITH_PLACE, read for POOL_PLACE_GRAD */
    void *result;
};

CUDA_C int cuda_pool(const struct cuda_pool *call, struct CUstream_st *stream);

/* cuda_pool with places (pool_place_cuda.cu), which it calls. */
CUDA_C int cuda_pool_place(const struct cuda_pool *call, struct CUstream_st *stream);

/* ---- batch norm ----
 *
 * Batch normalization of images [outer, channels, inner]: for NHWC inner is 1, for NCHW outer is
 * the number of images. Sums are in float64, in an order that depends only on the shape. */

struct cuda_batch_norm {
    enum cuda_type type; /* a float; also of the vectors */
    int64_t outer, channels, inner;
    bool training;
    double epsilon;
    const void *x, *scale;
    const void *g;               /* for the gradient: the incoming gradient; else NULL */
    const void *offset;          /* not for the gradient */
    const void *mean, *variance; /* for the gradient, and without training */
    /* y, mean, unbiased variance, mean, variance; for the gradient: those of x, scale, offset. */
    void *out[5];
    void *scratch; /* cuda_batch_norm_scratch bytes, at a multiple of 8 */
};

CUDA_C size_t cuda_batch_norm_scratch(int64_t outer, int64_t channels, int64_t inner);

CUDA_C int cuda_batch_norm(const struct cuda_batch_norm *call, struct CUstream_st *stream);

/* Launched before and after cuDNN's, whose vectors in scratch memory differ from ours: in training
 * mean and unbiased variance, zeroed before and converted to outputs after; for the gradient 1 /
 * sqrt(variance + epsilon). Given statistics are copied to the outputs. */
CUDA_C int cuda_batch_norm_before(const struct cuda_batch_norm *call, struct CUstream_st *stream);
CUDA_C int cuda_batch_norm_after(const struct cuda_batch_norm *call, struct CUstream_st *stream);

/* ---- lrn ----
 *
 * Local response normalization over the innermost dimension, with the CPU's bits in float32. */

struct cuda_lrn {
    enum cuda_type type; /* a float */
    int64_t positions, channels, radius;
    double bias, alpha, beta;
    const void *x;
    const void *y, *g; /* for the gradient: LRN's output, and its gradient; else NULL */
    void *out;
};

CUDA_C int cuda_lrn(const struct cuda_lrn *call, struct CUstream_st *stream);

/* ---- softmax ----
 *
 * Softmax and cross entropies of rows. Elements of 16 bits are computed in float32; sums are in
 * float64, in an order that depends only on the length of a row. */

enum cuda_softmax_form {
    CUDA_SOFTMAX,
    CUDA_LOG_SOFTMAX,
    CUDA_CROSS_ENTROPY, /* y: the gradient, softmax - labels */
    CUDA_SPARSE_CROSS_ENTROPY,
};

struct cuda_softmax {
    enum cuda_softmax_form form;
    enum cuda_type type; /* a float */
    int64_t rows, n;
    const void *x;
    const void *labels;      /* [rows, n], or, sparse, [rows] class numbers */
    bool wide_classes;       /* int64; else int32 */
    void *y;                 /* [rows, n]; may be x */
    void *loss;              /* [rows], of cross entropies */
    struct cuda_fault fault; /* FAULT_LABEL if a label is not a class */
};

CUDA_C int cuda_softmax(const struct cuda_softmax *call, struct CUstream_st *stream);

/* ---- top k ----
 *
 * The k largest elements of rows, in order: NaN is the largest; of equals the first comes first.
 */

struct cuda_top_k {
    enum cuda_type type; /* a number */
    int64_t rows, n, k;
    const void *x;
    void *values;
    int32_t *indices;
};

/* Tells whether fewer than k elements of a row are larger than its target's; false if the target is
 * out of range, or an element is not finite. */
struct cuda_in_top_k {
    enum cuda_type type; /* of the predictions: a float */
    int64_t rows, n, k;
    const void *predictions, *targets;
    bool wide_targets; /* int64; else int32 */
    bool *out;
};

CUDA_C int cuda_top_k(const struct cuda_top_k *call, struct CUstream_st *stream);
CUDA_C int cuda_in_top_k(const struct cuda_in_top_k *call, struct CUstream_st *stream);

#endif
