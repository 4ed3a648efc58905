/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops that have two kernels: our own, and cuDNN's. Ours is taken, which has the CPU's order of
 * sums, unless TF_GPU_CHOICES names a file: then both are measured once for each shape, and the
 * faster one is kept there (choices_cuda.h). TF_CUDNN=1 has cuDNN's taken wherever it takes the op,
 * TF_CUDNN=0 nowhere. Only files whose names end in _cuda.c include this, and the tests' own
 * module.
 */
#ifndef TF_OPS_DEVICE_DNN_OP_CUDA_H
#define TF_OPS_DEVICE_DNN_OP_CUDA_H

#include "ops/device/dnn_cuda.h"

/* Those alone that have the same bits in each run, and mean what our ops mean. MaxPool is none: of
 * nothing but -inf the library makes the least finite number. Nor are its gradients: nobody says
 * which of equal cells the library gives a window's gradient to. Nor is LRN's: of
 * values that 16 bits hold the library's was further from the formula than our cases allow. */
enum cuda_dnn_kind {
    CUDA_DNN_AVG_POOL, /* of the cells that are inside the image */
    CUDA_DNN_AVG_POOL_GRAD,
    CUDA_DNN_LRN,
    CUDA_DNN_SOFTMAX, /* of all elements of each of the batch */
    CUDA_DNN_LOG_SOFTMAX,
    CUDA_DNN_NORM_TRAINING,
    CUDA_DNN_NORM_INFERENCE,
    CUDA_DNN_NORM_GRAD,
};

/* An op of images in either order, without gaps. */
struct cuda_dnn_op {
    enum cuda_dnn_kind kind;
    enum cuda_type type; /* a float; batch normalization and LRN: of 32 bits or 64 */
    bool nchw;
    int batch, channels;
    struct cuda_dnn_axis y, x; /* of pooling: without dilation; else `in` alone, and out is in */
    int neighbours;            /* of LRN: channels that are added, of which it is the middle one */
    double alpha, beta, bias;  /* of LRN: (bias + alpha / neighbours sum)^-beta */
    double epsilon;            /* of batch normalization */
};

/* In the device's memory; what an op has not is NULL. No output is an input. */
struct cuda_dnn_operands {
    const void *x;        /* of the mean's gradient: NULL */
    const void *g;        /* of gradients: what flows back */
    void *out;            /* y, or what flows back to x */
    const void *scale;    /* of normalization, by channel: this, and what follows */
    const void *offset;   /* not of the gradient */
    const void *mean;     /* not in training */
    const void *variance; /* of inference; of the gradient 1 / sqrt(variance + epsilon) */
    /* Written: in training mean and unbiased variance, which have to be zeros before; the gradients
     * of scale and offset. */
    void *vectors[2];
};

/* The functions that are called of the library. Functions that return an int return a
 * cudnnStatus_t. */
struct cuda_dnn_ops {
    int (*load)(struct error *err); /* ERR_UNAVAILABLE says what is missing */
    /* Makes the library's descriptor of the op; NULL with a status. */
    int (*describe)(const struct cuda_dnn_op *op, void **description);
    void (*free)(void *description);
    int (*run)(void *handle, void *description, const struct cuda_dnn_operands *operands);
};

extern const struct cuda_dnn_ops cuda_dnn_ops_real;

#define CUDA_TRIAL_IMAGES 3
#define CUDA_TRIAL_VECTORS 8

/* Memory to try an op with: images as large as its largest, vectors of double channels. */
struct cuda_trial_memory {
    void *images[CUDA_TRIAL_IMAGES], *vectors[CUDA_TRIAL_VECTORS], *scratch;
};

/* A family of ops whose launcher (launch_cuda.h) takes a struct of its own, the launch. */
struct cuda_dnn_family {
    size_t launch_bytes;
    int images; /* that it has, with the result */
    /* The launcher. */
    int (*own)(const void *launch, struct CUstream_st *stream);
    /* The operands that cuDNN computes on in its place, and launchers before and after it; NULL:
     * nothing. */
    void (*operands)(const void *launch, struct cuda_dnn_operands *operands);
    int (*before)(const void *launch, struct CUstream_st *stream);
    int (*after)(const void *launch, struct CUstream_st *stream);
    /* Sets the addresses of the launch. */
    void (*bind)(void *launch, const struct cuda_trial_memory *memory);
};

/* The choice of a kernel's prepare, the first member of its state, all zeros at first. */
struct cuda_dnn_step {
    const struct cuda_dnn_ops *ops;
    void *description; /* NULL: our own is taken */
    char name[48];     /* for plans */
};

/* Chooses for a launch that has no addresses yet, with `scratch` bytes of scratch memory, and names
 * the choice in the setup. cuDNN's op is that of the launch. An error: cuDNN was asked for, and is
 * missing, or the file of choices is none. */
int cuda_dnn_choose_op(struct kernel_setup *setup, const struct cuda_dnn_family *family,
                       const struct cuda_dnn_op *op, const void *launch, size_t scratch,
                       struct cuda_dnn_step *step);

/* Launches whichever was chosen. KERNEL_ENQUEUED, or an error. */
int cuda_dnn_launch(struct kernel_call *call, const struct cuda_dnn_step *step,
                    const struct cuda_dnn_family *family, const void *launch);

/* A kernel's `release` for a state that needs nothing else. */
void cuda_dnn_state_release(void *state);

/* Sets the sizes of an op whose image is of rank 4, known, and in the op's order, without windows.
 * False: cuDNN does not take it; it is empty, or has more elements than an int counts. */
bool cuda_dnn_take_image(struct cuda_dnn_op *op, const struct shape *image);

#endif
