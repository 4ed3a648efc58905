/* SPDX-License-Identifier: Apache-2.0
 *
 * cuDNN 9, whose library is found by its name when somebody asks for it first, and convolutions by
 * it; dnn_op_cuda.h has other ops. Where it is not there convolutions are products of unrolled
 * windows (ops/nn/conv_cuda.c), unless TF_CUDNN=1 asks for it; TF_CUDNN=0 leaves it out. Only files
 * whose names end in _cuda.c include this, and the tests' own module, which answers the same calls
 * with loops.
 */
#ifndef TF_OPS_DEVICE_DNN_CUDA_H
#define TF_OPS_DEVICE_DNN_CUDA_H

#include "exec/device/kernel.h"
#include "ops/device/launch_cuda.h"

struct cuda_device;
struct cuda_dnn_ops;

enum cuda_dnn_direction { CUDA_DNN_FORWARD, CUDA_DNN_IMAGE, CUDA_DNN_FILTER };

/* As cuDNN has it: zeros on both sides alike, before and behind the image. */
struct cuda_dnn_axis {
    int in, size, stride, dilation, pad, out;
};

/* Images are [batch, channels, y, x] or, unless nchw, [batch, y, x, channels]; filters have the
 * same order, with out_channels in the place of the batch. All are without gaps. */
struct cuda_dnn_conv {
    enum cuda_dnn_direction direction;
    enum cuda_type type; /* a float; those of 16 bits are added in float32 */
    bool nchw;
    /* Options of the device, set by cuda_dnn_choose and cuda_dnn_conv: float32 may be rounded to
     * TF32; bits may differ from run to run. */
    bool tf32, fast;
    bool exact; /* neither Winograd nor FFT (struct device_options) */
    int batch, in_channels, out_channels;
    struct cuda_dnn_axis y, x;
};

/* In the device's memory; what the direction says is written. */
struct cuda_dnn_data {
    void *image, *filter, *output, *workspace;
    size_t workspace_bytes; /* at least the algorithm's */
};

struct cuda_dnn_algorithm {
    int number; /* the library's, of the direction; < 0: there is none */
    size_t workspace_bytes;
};

/* The functions that are called of the library. Functions that return an int return a
 * cudnnStatus_t. */
struct cuda_dnn {
    int (*load)(struct error *err); /* ERR_UNAVAILABLE says what is missing */
    int (*version)(void);           /* 91900: 9.19.0 */
    int (*handle_new)(void **handle);
    void (*handle_free)(void *handle);
    int (*use)(void *handle, struct CUstream_st *stream); /* from now on in that stream */
    /* The best algorithm, of those that need no more memory and have the same bits in each run (or
     * not, if the convolution is fast) and are exact, if the convolution is: by what the library
     * knows of shapes or, with `data`, by a measurement with that memory, which waits for the
     * device, and overwrites what the direction writes. */
    int (*find)(void *handle, const struct cuda_dnn_conv *conv, const struct cuda_dnn_data *data,
                size_t limit, struct cuda_dnn_algorithm *found);
    int (*conv)(void *handle, const struct cuda_dnn_conv *conv, const struct cuda_dnn_data *data,
                int algorithm);
    /* "winograd", "fft": of an algorithm whose outputs depend on what they do not see; else NULL.
     */
    const char *(*spreads)(enum cuda_dnn_direction direction, int algorithm);
    const char *(*error_text)(int status);
    const struct cuda_dnn_ops *ops; /* dnn_op_cuda.h */
};

extern const struct cuda_dnn cuda_dnn_real;

#define CUDA_DNN_VARIABLE "TF_CUDNN" /* optional_cuda.h */

/* Returns whether convolutions are cuDNN's: *is_there. ERR_UNAVAILABLE: it was asked for, and is
 * missing. Called by prepare; thread-safe. */
int cuda_dnn_open(struct cuda_device *d, bool *is_there, struct error *err);
void cuda_dnn_close(struct cuda_device *d);

/* The algorithm for a convolution, which stays the same as long as the device is open: that of
 * the file of choices (choices_cuda.h), where there is one, or by shapes. If cuDNN has none, or
 * fails to say, its number is < 0. Thread-safe. */
void cuda_dnn_choose(struct cuda_device *d, const struct cuda_dnn_conv *conv,
                     struct cuda_dnn_algorithm *chosen);

/* Returns the name of a float type. */
const char *cuda_dnn_type_name(enum cuda_type type);

/* Makes the library put into the compute queue what it is asked for next, with the device's
 * dnn_lock held; 0, or what a status of the library says. */
int cuda_dnn_use_queue(struct cuda_device *d, struct error *err);
int cuda_dnn_check(const struct cuda_device *d, int status, const char *what, struct error *err);

/* KERNEL_ENQUEUED, or an error. Thread-safe. */
int cuda_dnn_conv(struct kernel_call *call, const struct cuda_dnn_conv *conv,
                  const struct cuda_dnn_data *data, int algorithm);

#endif
