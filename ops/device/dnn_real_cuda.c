/* SPDX-License-Identifier: Apache-2.0
 *
 * cuDNN, of the version that this was built with. The algorithms are those of its descriptor API
 * for convolutions, which tells whether their bits are the same in each run.
 */
#include "ops/device/dnn_cuda.h"

#include "ops/device/library_real_cuda.h"

#if __has_include(<cudnn.h>)
#include <cudnn.h>

#include "ops/device/dnn_op_cuda.h"

#define ALGORITHMS 10 /* more than any direction has */

#define FUNCTIONS(X)                                                                               \
    X(get_version, cudnnGetVersion)                                                                \
    X(create, cudnnCreate)                                                                         \
    X(destroy, cudnnDestroy)                                                                       \
    X(set_stream, cudnnSetStream)                                                                  \
    X(text, cudnnGetErrorString)                                                                   \
    X(tensor_new, cudnnCreateTensorDescriptor)                                                     \
    X(tensor_set, cudnnSetTensor4dDescriptor)                                                      \
    X(tensor_free, cudnnDestroyTensorDescriptor)                                                   \
    X(filter_new, cudnnCreateFilterDescriptor)                                                     \
    X(filter_set, cudnnSetFilter4dDescriptor)                                                      \
    X(filter_free, cudnnDestroyFilterDescriptor)                                                   \
    X(conv_new, cudnnCreateConvolutionDescriptor)                                                  \
    X(conv_set, cudnnSetConvolution2dDescriptor)                                                   \
    X(conv_groups, cudnnSetConvolutionGroupCount)                                                  \
    X(conv_math, cudnnSetConvolutionMathType)                                                      \
    X(conv_free, cudnnDestroyConvolutionDescriptor)                                                \
    X(forward_known, cudnnGetConvolutionForwardAlgorithm_v7)                                       \
    X(forward_measured, cudnnFindConvolutionForwardAlgorithmEx)                                    \
    X(forward_bytes, cudnnGetConvolutionForwardWorkspaceSize)                                      \
    X(forward, cudnnConvolutionForward)                                                            \
    X(image_known, cudnnGetConvolutionBackwardDataAlgorithm_v7)                                    \
    X(image_measured, cudnnFindConvolutionBackwardDataAlgorithmEx)                                 \
    X(image_bytes, cudnnGetConvolutionBackwardDataWorkspaceSize)                                   \
    X(image, cudnnConvolutionBackwardData)                                                         \
    X(filter_known, cudnnGetConvolutionBackwardFilterAlgorithm_v7)                                 \
    X(filter_measured, cudnnFindConvolutionBackwardFilterAlgorithmEx)                              \
    X(filter_bytes, cudnnGetConvolutionBackwardFilterWorkspaceSize)                                \
    X(filter, cudnnConvolutionBackwardFilter)

CUDA_LIBRARY(dnn, FUNCTIONS, "convolutions", CUDA_LIBRARY_FILE("cudnn", CUDNN_MAJOR))

static int version(void)
{
    return (int)dnn.get_version();
}

CUDA_LIBRARY_HANDLES(dnn, cudnnHandle_t)

CUDA_LIBRARY_ERRORS(dnn, cudnnStatus_t)

static int use_stream(void *handle, struct CUstream_st *stream, void *no_workspace)
{
    (void)no_workspace;
    return (int)dnn.set_stream(handle, stream);
}

/* ---- descriptors ---- */

struct dnn_descriptors {
    cudnnTensorDescriptor_t image, output;
    cudnnFilterDescriptor_t filter;
    cudnnConvolutionDescriptor_t conv;
    cudnnMathType_t math;
};

static void undescribe(struct dnn_descriptors *s)
{
    if (s->image)
        dnn.tensor_free(s->image);
    if (s->output)
        dnn.tensor_free(s->output);
    if (s->filter)
        dnn.filter_free(s->filter);
    if (s->conv)
        dnn.conv_free(s->conv);
}

static cudnnStatus_t describe(struct dnn_descriptors *s, const struct cuda_dnn_conv *c)
{
    static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                            CUDNN_DATA_BFLOAT16};
    cudnnTensorFormat_t format = c->nchw ? CUDNN_TENSOR_NCHW : CUDNN_TENSOR_NHWC;
    cudnnDataType_t type = types[c->type];
    bool is_narrow = c->type == CUDA_FLOAT16 || c->type == CUDA_BFLOAT16;
    /* The default rounds factors of float32 to TF32. */
    *s = (struct dnn_descriptors){.math = is_narrow ? CUDNN_TENSOR_OP_MATH
                                          : c->tf32 ? CUDNN_DEFAULT_MATH
                                                    : CUDNN_FMA_MATH};
    cudnnStatus_t status = dnn.tensor_new(&s->image);
    CUDA_TRY(status, dnn.tensor_new(&s->output));
    CUDA_TRY(status, dnn.filter_new(&s->filter));
    CUDA_TRY(status, dnn.conv_new(&s->conv));
    CUDA_TRY(status,
             dnn.tensor_set(s->image, format, type, c->batch, c->in_channels, c->y.in, c->x.in));
    CUDA_TRY(status, dnn.tensor_set(s->output, format, type, c->batch, c->out_channels, c->y.out,
                                    c->x.out));
    CUDA_TRY(status, dnn.filter_set(s->filter, type, format, c->out_channels,
                                    c->in_channels / c->groups, c->y.size, c->x.size));
    CUDA_TRY(status, dnn.conv_set(s->conv, c->y.pad, c->x.pad, c->y.stride, c->x.stride,
                                  c->y.dilation, c->x.dilation, CUDNN_CROSS_CORRELATION,
                                  c->type == CUDA_FLOAT64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT));
    CUDA_TRY(status, dnn.conv_groups(s->conv, c->groups));
    return status ? status : dnn.conv_math(s->conv, s->math);
}

/* ---- algorithms ---- */

static const char *spreads(enum cuda_dnn_direction direction, int algorithm)
{
    static const struct {
        enum cuda_dnn_direction direction;
        int algorithm;
        const char *name;
    } all[] = {
        {CUDA_DNN_FORWARD, CUDNN_CONVOLUTION_FWD_ALGO_FFT, "fft"},
        {CUDA_DNN_FORWARD, CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING, "fft"},
        {CUDA_DNN_FORWARD, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, "winograd"},
        {CUDA_DNN_FORWARD, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, "winograd"},
        {CUDA_DNN_IMAGE, CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT, "fft"},
        {CUDA_DNN_IMAGE, CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING, "fft"},
        {CUDA_DNN_IMAGE, CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD, "winograd"},
        {CUDA_DNN_IMAGE, CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED, "winograd"},
        {CUDA_DNN_FILTER, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT, "fft"},
        {CUDA_DNN_FILTER, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING, "fft"},
        {CUDA_DNN_FILTER, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD, "winograd"},
        {CUDA_DNN_FILTER, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED, "winograd"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].direction == direction && all[i].algorithm == algorithm)
            return all[i].name;
    return NULL;
}

/* See struct cuda_dnn. */
static bool may_be(const struct cuda_dnn_conv *c, const struct dnn_descriptors *s, int algorithm,
                   cudnnMathType_t math, cudnnDeterminism_t determinism)
{
    return (math == s->math || c->type != CUDA_FLOAT32) &&
           (c->fast || determinism == CUDNN_DETERMINISTIC) &&
           !(c->exact && spreads(c->direction, algorithm));
}

/* Finds the first, that is the best, algorithm that may be used and has enough memory, for the
 * direction that computes `result` from a and b. */
#define FIND(way, perf_type, a, b, result)                                                         \
    static cudnnStatus_t find_##way(                                                               \
        void *handle, const struct cuda_dnn_conv *c, const struct dnn_descriptors *s,              \
        const struct cuda_dnn_data *data, size_t limit, struct cuda_dnn_algorithm *found)          \
    {                                                                                              \
        perf_type all[ALGORITHMS];                                                                 \
        int n = 0;                                                                                 \
        cudnnStatus_t status =                                                                     \
            data ? dnn.way##_measured(handle, s->a, data->a, s->b, data->b, s->conv, s->result,    \
                                      data->result, ALGORITHMS, &n, all, data->workspace,          \
                                      data->workspace_bytes)                                       \
                 : dnn.way##_known(handle, s->a, s->b, s->conv, s->result, ALGORITHMS, &n, all);   \
        *found = (struct cuda_dnn_algorithm){.number = -1};                                        \
        for (int i = 0; !status && found->number < 0 && i < n; i++) {                              \
            size_t needed = 0;                                                                     \
            if (all[i].status ||                                                                   \
                !may_be(c, s, (int)all[i].algo, all[i].mathType, all[i].determinism) ||            \
                dnn.way##_bytes(handle, s->a, s->b, s->conv, s->result, all[i].algo, &needed) ||   \
                needed > limit)                                                                    \
                continue;                                                                          \
            *found = (struct cuda_dnn_algorithm){(int)all[i].algo, needed};                        \
        }                                                                                          \
        return status;                                                                             \
    }
FIND(forward, cudnnConvolutionFwdAlgoPerf_t, image, filter, output)
FIND(image, cudnnConvolutionBwdDataAlgoPerf_t, filter, output, image)
FIND(filter, cudnnConvolutionBwdFilterAlgoPerf_t, image, output, filter)

static int find(void *handle, const struct cuda_dnn_conv *c, const struct cuda_dnn_data *data,
                size_t limit, struct cuda_dnn_algorithm *found)
{
    struct dnn_descriptors s;
    cudnnStatus_t status = describe(&s, c);
    if (!status)
        status = c->direction == CUDA_DNN_FORWARD ? find_forward(handle, c, &s, data, limit, found)
                 : c->direction == CUDA_DNN_IMAGE ? find_image(handle, c, &s, data, limit, found)
                                                  : find_filter(handle, c, &s, data, limit, found);
    undescribe(&s);
    return (int)status;
}

/* ---- convolutions ---- */

static int conv(void *handle, const struct cuda_dnn_conv *c, const struct cuda_dnn_data *data,
                int algorithm)
{
    const void *alpha = cuda_factor(c->type, true), *beta = cuda_factor(c->type, false);
    struct dnn_descriptors s;
    cudnnStatus_t status = describe(&s, c);
    if (c->direction == CUDA_DNN_FORWARD)
        CUDA_TRY(status, dnn.forward(handle, alpha, s.image, data->image, s.filter, data->filter,
                                     s.conv, (cudnnConvolutionFwdAlgo_t)algorithm, data->workspace,
                                     data->workspace_bytes, beta, s.output, data->output));
    else if (c->direction == CUDA_DNN_IMAGE)
        CUDA_TRY(status,
                 dnn.image(handle, alpha, s.filter, data->filter, s.output, data->output, s.conv,
                           (cudnnConvolutionBwdDataAlgo_t)algorithm, data->workspace,
                           data->workspace_bytes, beta, s.image, data->image));
    else
        CUDA_TRY(status,
                 dnn.filter(handle, alpha, s.image, data->image, s.output, data->output, s.conv,
                            (cudnnConvolutionBwdFilterAlgo_t)algorithm, data->workspace,
                            data->workspace_bytes, beta, s.filter, data->filter));
    undescribe(&s);
    return (int)status;
}

const struct cuda_dnn cuda_dnn_real = {
    .calls = {"cuDNN", load, error_text, handle_new, handle_free, use_stream, 0},
    .version = version,
    .find = find,
    .conv = conv,
    .spreads = spreads,
    .ops = &cuda_dnn_ops_real};
#else
CUDA_LIBRARY_ABSENT(cuda_dnn, "library of convolutions", "cudnn.h");
#endif
