/* SPDX-License-Identifier: Apache-2.0
 *
 * cuDNN 9, and convolutions by it; dnn_op_cuda.h has other ops. The library is found by name at the
 * first request. Without it convolutions are products of unrolled windows (ops/nn/conv_cuda.c),
 * unless TF_CUDNN=1 requires it; TF_CUDNN=0 disables it. This is included only by files whose names
 * end in _cuda.c, and by the tests' own module, which implements the same calls with loops.
 */
#ifndef TF_OPS_DEVICE_DNN_CUDA_H
#define TF_OPS_DEVICE_DNN_CUDA_H

#include "exec/device/kernel.h"
#include "ops/device/launch_cuda.h"
#include "ops/device/library_cuda.h"

struct cuda_device;
struct cuda_dnn_ops;

enum cuda_dnn_direction { CUDA_DNN_FORWARD, CUDA_DNN_IMAGE, CUDA_DNN_FILTER };

/* As in cuDNN: equal padding with zeros before and after the image. */
struct cuda_dnn_axis {
    int in, size, stride, dilation, pad, out;
};

/* Images are [batch, channels, y, x] or, unless nchw, [batch, y, x, channels]; filters have the
 * same order, with out_channels in the place of the batch and the in channels of one group. All are
 * without gaps. */
struct cuda_dnn_conv {
    enum cuda_dnn_direction direction;
    enum cuda_type type; /* a float; 16-bit types are summed in float32 */
    bool nchw;
    /* Options of the device, set by cuda_dnn_choose and cuda_dnn_conv: float32 may be rounded to
     * TF32; bits may differ from run to run. */
    bool tf32, fast;
    bool exact; /* neither Winograd nor FFT (struct device_options) */
    int batch, in_channels, out_channels, groups;
    struct cuda_dnn_axis y, x;
};

/* In device memory; the direction tells which is written. */
struct cuda_dnn_data {
    void *image, *filter, *output, *workspace;
    size_t workspace_bytes; /* at least the algorithm's */
};

struct cuda_dnn_algorithm {
    int number; /* the library's, for the direction; < 0: there is none */
    size_t workspace_bytes;
};

/* The library functions that are called. Functions that return an int return a cudnnStatus_t. */
struct cuda_dnn {
    struct cuda_library_calls calls;
    int (*version)(void); /* 91900: 9.19.0 */
    /* Finds the best algorithm within `limit` bytes that is reproducible (unless the convolution is
     * `fast`) and exact (if the convolution is `exact`). Without `data` the library ranks by
     * shapes; with `data` it measures in that memory, which waits for the device and overwrites
     * what the direction writes. */
    int (*find)(void *handle, const struct cuda_dnn_conv *conv, const struct cuda_dnn_data *data,
                size_t limit, struct cuda_dnn_algorithm *found);
    int (*conv)(void *handle, const struct cuda_dnn_conv *conv, const struct cuda_dnn_data *data,
                int algorithm);
    /* "winograd" or "fft" if an algorithm's outputs depend on inputs outside of their windows; else
     * NULL.
     */
    const char *(*spreads)(enum cuda_dnn_direction direction, int algorithm);
    const struct cuda_dnn_ops *ops; /* dnn_op_cuda.h */
};

extern const struct cuda_dnn cuda_dnn_real;

#define CUDA_DNN_VARIABLE "TF_CUDNN" /* library_cuda.h */

/* Opens cuDNN; *is_there: convolutions use it. ERR_UNAVAILABLE: it is required, but missing. Called
 * by prepare; thread-safe. */
int cuda_dnn_open(struct cuda_device *d, bool *is_there, struct error *err);

/* Chooses the algorithm for a convolution, which stays the same as long as the device is open: from
 * the file of choices (choices_cuda.h), if there is one, or by shapes. Its number is < 0 if cuDNN
 * has none or fails. Thread-safe. */
void cuda_dnn_choose(struct cuda_device *d, const struct cuda_dnn_conv *conv,
                     struct cuda_dnn_algorithm *chosen);

/* Returns KERNEL_ENQUEUED, or an error. Thread-safe. */
int cuda_dnn_conv(struct kernel_call *call, const struct cuda_dnn_conv *conv,
                  const struct cuda_dnn_data *data, int algorithm);

#endif
