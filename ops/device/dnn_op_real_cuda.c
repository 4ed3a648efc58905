/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops other than convolutions by cuDNN. A result replaces what was there before: the library's
 * alpha is 1, and its beta 0.
 */
#include "ops/device/dnn_op_cuda.h"

#include "ops/device/library_real_cuda.h"

#if __has_include(<cudnn.h>)
#include <cudnn.h>

#include "base/memory.h"

#define FUNCTIONS(X)                                                                               \
    X(tensor_new, cudnnCreateTensorDescriptor)                                                     \
    X(tensor_set, cudnnSetTensor4dDescriptor)                                                      \
    X(tensor_free, cudnnDestroyTensorDescriptor)                                                   \
    X(pool_new, cudnnCreatePoolingDescriptor)                                                      \
    X(pool_set, cudnnSetPooling2dDescriptor)                                                       \
    X(pool_free, cudnnDestroyPoolingDescriptor)                                                    \
    X(pool, cudnnPoolingForward)                                                                   \
    X(pool_back, cudnnPoolingBackward)                                                             \
    X(lrn_new, cudnnCreateLRNDescriptor)                                                           \
    X(lrn_set, cudnnSetLRNDescriptor)                                                              \
    X(lrn_free, cudnnDestroyLRNDescriptor)                                                         \
    X(lrn, cudnnLRNCrossChannelForward)                                                            \
    X(softmax, cudnnSoftmaxForward)                                                                \
    X(norm_train, cudnnBatchNormalizationForwardTraining)                                          \
    X(norm_infer, cudnnBatchNormalizationForwardInference)                                         \
    X(norm_back, cudnnBatchNormalizationBackward)

CUDA_LIBRARY(dnn, FUNCTIONS, "pooling and normalization", CUDA_LIBRARY_FILE("cudnn", CUDNN_MAJOR))

/* ---- descriptions ---- */

struct description {
    enum cuda_dnn_kind kind;
    double epsilon;
    cudnnTensorDescriptor_t image, output, vector; /* vector: one element for each channel */
    cudnnPoolingDescriptor_t pool;                 /* NULL: not pooling */
    cudnnLRNDescriptor_t lrn;                      /* NULL: not LRN */
    const void *one, *zero;                        /* factors */
};

static void destroy_descriptor(void *description)
{
    struct description *s = description;
    if (s->image)
        dnn.tensor_free(s->image);
    if (s->output)
        dnn.tensor_free(s->output);
    if (s->vector)
        dnn.tensor_free(s->vector);
    if (s->pool)
        dnn.pool_free(s->pool);
    if (s->lrn)
        dnn.lrn_free(s->lrn);
    mem_free(s);
}

static int describe(const struct cuda_dnn_op *op, void **description)
{
    struct description *s = mem_alloc(sizeof *s);
    static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                            CUDNN_DATA_BFLOAT16};
    *s = (struct description){.kind = op->kind,
                              .epsilon = op->epsilon,
                              .one = cuda_factor(op->type, true),
                              .zero = cuda_factor(op->type, false)};
    cudnnTensorFormat_t format = op->nchw ? CUDNN_TENSOR_NCHW : CUDNN_TENSOR_NHWC;
    cudnnDataType_t type = types[op->type];
    cudnnStatus_t status = dnn.tensor_new(&s->image);
    CUDA_TRY(status, dnn.tensor_new(&s->output));
    CUDA_TRY(status, dnn.tensor_new(&s->vector));
    CUDA_TRY(status,
             dnn.tensor_set(s->image, format, type, op->batch, op->channels, op->y.in, op->x.in));
    CUDA_TRY(status, dnn.tensor_set(s->output, format, type, op->batch, op->channels, op->y.out,
                                    op->x.out));
    CUDA_TRY(status, dnn.tensor_set(s->vector, format, type, 1, op->channels, 1, 1));
    if (op->kind <= CUDA_DNN_AVG_POOL_GRAD) {
        CUDA_TRY(status, dnn.pool_new(&s->pool));
        CUDA_TRY(status, dnn.pool_set(s->pool, CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING,
                                      CUDNN_PROPAGATE_NAN, op->y.size, op->x.size, op->y.pad,
                                      op->x.pad, op->y.stride, op->x.stride));
    }
    if (op->kind == CUDA_DNN_LRN) {
        CUDA_TRY(status, dnn.lrn_new(&s->lrn));
        CUDA_TRY(status,
                 dnn.lrn_set(s->lrn, (unsigned)op->neighbours, op->alpha, op->beta, op->bias));
    }
    if (status)
        destroy_descriptor(s);
    *description = status ? NULL : s;
    return (int)status;
}

/* ---- run ---- */

/* The persistent mode may be faster, but overflows where the others do not. With a factor of 1 the
 * running statistics are those of the batch. */
static cudnnStatus_t run_norm(cudnnHandle_t handle, const struct description *s,
                              const struct cuda_dnn_operands *o)
{
    const cudnnBatchNormMode_t mode = CUDNN_BATCHNORM_SPATIAL;
    if (s->kind == CUDA_DNN_NORM_TRAINING)
        return dnn.norm_train(handle, mode, s->one, s->zero, s->image, o->x, s->image, o->out,
                              s->vector, o->scale, o->offset, 1, o->vectors[0], o->vectors[1],
                              s->epsilon, NULL, NULL);
    if (s->kind == CUDA_DNN_NORM_INFERENCE)
        return dnn.norm_infer(handle, mode, s->one, s->zero, s->image, o->x, s->image, o->out,
                              s->vector, o->scale, o->offset, o->mean, o->variance, s->epsilon);
    return dnn.norm_back(handle, mode, s->one, s->zero, s->one, s->zero, s->image, o->x, s->image,
                         o->g, s->image, o->out, s->vector, o->scale, o->vectors[0], o->vectors[1],
                         s->epsilon, o->mean, o->variance);
}

static int run(void *handle, void *description, const struct cuda_dnn_operands *operands)
{
    const struct description *s = description;
    const struct cuda_dnn_operands *o = operands;
    if (s->kind == CUDA_DNN_AVG_POOL)
        return (int)dnn.pool(handle, s->pool, s->one, s->image, o->x, s->zero, s->output, o->out);
    /* The library requires x and y, although a mean's gradient does not depend on them: the output
     * buffer and the incoming gradient, which have their sizes, stand in for them. */
    if (s->kind == CUDA_DNN_AVG_POOL_GRAD)
        return (int)dnn.pool_back(handle, s->pool, s->one, s->output, o->g, s->output, o->g,
                                  s->image, o->out, s->zero, s->image, o->out);
    if (s->kind == CUDA_DNN_LRN)
        return (int)dnn.lrn(handle, s->lrn, CUDNN_LRN_CROSS_CHANNEL_DIM1, s->one, s->image, o->x,
                            s->zero, s->image, o->out);
    if (s->kind < CUDA_DNN_NORM_TRAINING)
        return (int)dnn.softmax(
            handle, s->kind == CUDA_DNN_SOFTMAX ? CUDNN_SOFTMAX_ACCURATE : CUDNN_SOFTMAX_LOG,
            CUDNN_SOFTMAX_MODE_INSTANCE, s->one, s->image, o->x, s->zero, s->image, o->out);
    return (int)run_norm(handle, s, o);
}

const struct cuda_dnn_ops cuda_dnn_ops_real = {
    .calls = {.load = load}, .describe = describe, .free = destroy_descriptor, .run = run};
#else
CUDA_LIBRARY_ABSENT(cuda_dnn_ops, "cuDNN", "cudnn.h");
#endif
