/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops with two kernels: our own, and cuDNN's. Ours, which has the CPU's order of sums, is used
 * unless TF_GPU_CHOICES names a file: then both are measured once per shape, and the faster choice
 * is kept there (choices_cuda.h). TF_CUDNN=1 uses cuDNN wherever it supports the op, TF_CUDNN=0
 * never. This is included only by files whose names end in _cuda.c, and by the tests' own module.
 */
#ifndef TF_OPS_DEVICE_DNN_OP_CUDA_H
#define TF_OPS_DEVICE_DNN_OP_CUDA_H

#include "ops/device/dnn_cuda.h"

/* Only ops that have the same bits in each run, and the meaning of our ops. MaxPool is not here:
 * for a window of only -inf the library returns the least finite number. Nor is its gradient: it is
 * not documented which of several equal cells gets a window's gradient. Nor is LRN's: for 16-bit
 * values the library's was further from the formula than our cases allow. */
enum cuda_dnn_kind {
    CUDA_DNN_AVG_POOL, /* mean over the cells inside the image */
    CUDA_DNN_AVG_POOL_GRAD,
    CUDA_DNN_LRN,
    CUDA_DNN_SOFTMAX, /* over all elements of each batch item */
    CUDA_DNN_LOG_SOFTMAX,
    CUDA_DNN_NORM_TRAINING,
    CUDA_DNN_NORM_INFERENCE,
    CUDA_DNN_NORM_GRAD,
};

/* An op on dense images in either order. */
struct cuda_dnn_op {
    enum cuda_dnn_kind kind;
    enum cuda_type type; /* a float; batch normalization and LRN: 32 or 64 bits */
    bool nchw;
    int batch, channels;
    struct cuda_dnn_axis y, x; /* pooling: without dilation; other ops: only `in`; out is in */
    int neighbours;            /* LRN: channels summed, with its own in the middle */
    double alpha, beta, bias;  /* LRN: (bias + alpha / neighbours sum)^-beta */
    double epsilon;            /* of batch normalization */
};

/* In device memory; NULL: the op lacks it. No output is an input. */
struct cuda_dnn_operands {
    const void *x;        /* NULL for the gradient of the mean pool */
    const void *g;        /* for gradients: the gradient of y */
    void *out;            /* y, or the gradient of x */
    const void *scale;    /* for normalization, by channel: this and the following */
    const void *offset;   /* not for the gradient */
    const void *mean;     /* not in training */
    const void *variance; /* for inference; for the gradient 1 / sqrt(variance + epsilon) */
    /* Outputs: in training mean and unbiased variance, which must be zero before; else the
     * gradients of scale and offset. */
    void *vectors[2];
};

/* The library functions that are called. Functions that return an int return a cudnnStatus_t. */
struct cuda_dnn_ops {
    struct cuda_library_calls calls; /* only `load` */
    /* Makes the library's descriptor of the op; NULL with a status. */
    int (*describe)(const struct cuda_dnn_op *op, void **description);
    void (*free)(void *description);
    int (*run)(void *handle, void *description, const struct cuda_dnn_operands *operands);
};

extern const struct cuda_dnn_ops cuda_dnn_ops_real;

#define CUDA_TRIAL_VECTORS 8

/* Memory to try an op with: vectors of one double per channel. */
struct cuda_trial_memory {
    void *vectors[CUDA_TRIAL_VECTORS], *scratch;
};

/* A family of ops whose launcher (launch_cuda.h) takes a specific struct, the launch. */
struct cuda_dnn_family {
    size_t launch_bytes;
    /* Where in the launch the addresses of its images are, which are those operands if cuDNN
     * computes instead; 0: it has no such image. */
    size_t x, g, out;
    /* The launcher. */
    int (*own)(const void *launch, struct CUstream_st *stream);
    /* What follows may be NULL. The other operands, and launchers to call before and after
     * cuDNN. */
    void (*operands)(const void *launch, struct cuda_dnn_operands *operands);
    int (*before)(const void *launch, struct CUstream_st *stream);
    int (*after)(const void *launch, struct CUstream_st *stream);
    /* Sets the other addresses of the launch. */
    void (*bind)(void *launch, const struct cuda_trial_memory *memory);
};

/* Defines a function of a family that calls a launcher. */
#define CUDA_DNN_LAUNCHER(name, launcher)                                                          \
    static int name(const void *launch, struct CUstream_st *stream)                                \
    {                                                                                              \
        return launcher(launch, stream);                                                           \
    }

/* The choice made by a kernel's prepare; the first member of its state, zeroed at first. */
struct cuda_dnn_step {
    const struct cuda_dnn_ops *ops;
    void *description; /* NULL: our own kernel is used */
    char name[48];     /* for plans */
};

/* Chooses for a launch without addresses yet, with `scratch` bytes of scratch memory, and names the
 * choice in the setup. `op` is cuDNN's form of the launch. An error: cuDNN is required, but
 * missing, or the file of choices is malformed. */
int cuda_dnn_choose_op(struct kernel_setup *setup, const struct cuda_dnn_family *family,
                       const struct cuda_dnn_op *op, const void *launch, size_t scratch,
                       struct cuda_dnn_step *step);

/* Launches what was chosen. Returns KERNEL_ENQUEUED, or an error. */
int cuda_dnn_launch(struct kernel_call *call, const struct cuda_dnn_step *step,
                    const struct cuda_dnn_family *family, const void *launch);

/* A kernel's `release` for a state that owns nothing else. */
void cuda_dnn_state_release(void *state);

/* Sets the sizes of an op without windows, whose image has rank 4, a known shape and the op's
 * order. False: cuDNN does not support it: it is empty, or has more elements than an int can
 * count. */
bool cuda_dnn_take_image(struct cuda_dnn_op *op, const struct shape *image);

#endif
