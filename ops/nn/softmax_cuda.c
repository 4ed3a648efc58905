/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels of Softmax, our own or cuDNN's (ops/device/dnn_op_cuda.h), and cross entropies.
 * Features and labels that are broadcast are copied repeatedly into scratch memory.
 */
#include "ops/nn/launchers_cuda.h"

#include "base/memory.h"
#include "ops/array/strided.h"
#include "ops/device/dnn_op_cuda.h"
#include "ops/device/kernel_cuda.h"
#include "ops/math/outputs.h"

/* ---- Softmax, LogSoftmax ---- */

struct cuda_softmax_state {
    struct cuda_dnn_step dnn; /* first */
    enum cuda_softmax_form form;
};

CUDA_DNN_LAUNCHER(own_softmax, cuda_softmax)

static const struct cuda_dnn_family family = {.launch_bytes = sizeof(struct cuda_softmax),
                                              .x = offsetof(struct cuda_softmax, x),
                                              .out = offsetof(struct cuda_softmax, y),
                                              .own = own_softmax};

static int choose(struct kernel_setup *setup, struct cuda_softmax_state *state)
{
    const struct node_output *x = &setup->in_types[0];
    if (!setup->shapes_known || !shape_count(&x->shape))
        return 0;
    struct cuda_softmax launch = {
        .form = state->form, .type = cuda_type_of(x->type), .n = x->shape.dims[x->shape.rank - 1]};
    launch.rows = shape_count(&x->shape) / launch.n;
    /* Each row is an image of one cell. */
    struct cuda_dnn_op op = {.kind = launch.form == CUDA_SOFTMAX ? CUDA_DNN_SOFTMAX
                                                                 : CUDA_DNN_LOG_SOFTMAX,
                             .type = launch.type,
                             .nchw = true};
    struct shape image = {4, {launch.rows, launch.n, 1, 1}};
    return cuda_dnn_take_image(&op, &image)
               ? cuda_dnn_choose_op(setup, &family, &op, &launch, 0, &state->dnn)
               : 0;
}

/* cuDNN's manual does not say that it may overwrite what it reads. */
static int softmax_prepare(struct kernel_setup *setup)
{
    struct cuda_softmax_state *state = setup->state = mem_alloc(sizeof *state);
    state->form = node_is(setup->node, "Softmax") ? CUDA_SOFTMAX : CUDA_LOG_SOFTMAX;
    int code = choose(setup, state);
    if (!state->dnn.description)
        kernel_offer_reuse(setup, 0);
    return code;
}

static int softmax_run(struct kernel_call *call)
{
    const struct cuda_softmax_state *state = call->state;
    const struct tensor *x = call->in[0];
    const struct tensor *out = result_outputs(call, 0, 0);
    if (!out || !tensor_count(out))
        return call->err->code;
    int64_t n = out->shape.dims[out->shape.rank - 1];
    struct cuda_softmax launch = {.form = state->form,
                                  .type = cuda_type_of(x->type),
                                  .rows = tensor_count(out) / n,
                                  .n = n,
                                  .x = x->data,
                                  .y = out->data};
    return cuda_dnn_launch(call, &state->dnn, &family, &launch);
}

const struct kernel_code kernel_cuda_softmax = {
    .prepare = softmax_prepare, .run = softmax_run, .release = cuda_dnn_state_release};

/* ---- cross entropies ---- */

static bool is_repeated(const struct shape *has, const struct shape *shape)
{
    return !shape_equal(has, shape) && shape_count(shape);
}

static size_t matrix_bytes(const struct shape *shape, enum dtype type)
{
    return ALIGN_UP((size_t)shape_bytes(shape, type));
}

/* Returns the scratch memory that `shape` needs for inputs of these shapes. */
static size_t broadcast_scratch(const struct shape *features, const struct shape *labels,
                                const struct shape *shape, enum dtype type)
{
    int n = is_repeated(features, shape) + is_repeated(labels, shape);
    return n ? (size_t)n * matrix_bytes(shape, type) : 0;
}

static int entropy_prepare(struct kernel_setup *setup)
{
    const struct node_output *in = setup->in_types;
    if (setup->shapes_known)
        setup->scratch_bytes =
            broadcast_scratch(&in[0].shape, &in[1].shape, &setup->out_types[1].shape, in[0].type);
    return 0;
}

/* Returns the input as a matrix of that shape: itself, or repeated at *scratch, which is then
 * advanced. */
static int spread(struct kernel_call *call, const struct tensor *in, const struct shape *shape,
                  char **scratch, const void **matrix)
{
    void *copy = *scratch;
    *matrix = in->data;
    if (!is_repeated(&in->shape, shape))
        return KERNEL_ENQUEUED;
    struct strided s = strided_repeated(in, shape);
    *matrix = copy;
    *scratch += matrix_bytes(shape, in->type);
    return strided_move(call, &s, copy, in->data);
}

/* Describes a launch with its outputs allocated. */
static int describe(struct kernel_call *call, enum cuda_softmax_form form,
                    struct cuda_softmax *launch)
{
    const struct tensor *x = call->in[0], *labels = call->in[1];
    const struct tensor *loss = result_outputs(call, 0, 0), *backprop = call->out[1];
    if (!loss)
        return call->err->code;
    *launch = (struct cuda_softmax){.form = form,
                                    .type = cuda_type_of(x->type),
                                    .rows = backprop->shape.dims[0],
                                    .n = backprop->shape.dims[1],
                                    .x = x->data,
                                    .labels = labels->data,
                                    .wide_classes = labels->type == INT64,
                                    .y = backprop->data,
                                    .loss = loss->data,
                                    .fault = cuda_fault_of(call, 1)};
    return 0;
}

static int entropy_run(struct kernel_call *call)
{
    struct cuda_softmax launch;
    if (describe(call, CUDA_CROSS_ENTROPY, &launch))
        return call->err->code;
    if (!launch.rows)
        return KERNEL_DONE;
    const struct tensor *x = call->in[0], *labels = call->in[1];
    const struct shape *shape = &call->out[1]->shape;
    size_t bytes = broadcast_scratch(&x->shape, &labels->shape, shape, x->type);
    char *scratch = cuda_scratch(call, bytes);
    if (bytes && !scratch)
        return call->err->code;
    int code = spread(call, x, shape, &scratch, &launch.x);
    if (code == KERNEL_ENQUEUED)
        code = spread(call, labels, shape, &scratch, &launch.labels);
    if (code == KERNEL_ENQUEUED)
        code = cuda_launched(call, cuda_softmax(&launch, cuda_compute(call)));
    return code;
}

/* A thread reads the label's logit before it writes. */
static int sparse_prepare(struct kernel_setup *setup)
{
    setup->out[1].forward = FORWARD_REUSE;
    return 0;
}

static int sparse_run(struct kernel_call *call)
{
    struct cuda_softmax launch;
    if (describe(call, CUDA_SPARSE_CROSS_ENTROPY, &launch))
        return call->err->code;
    if (!launch.rows)
        return KERNEL_DONE;
    return cuda_launched(call, cuda_softmax(&launch, cuda_compute(call)));
}

const struct kernel_code kernel_cuda_cross_entropy = {.prepare = entropy_prepare,
                                                      .run = entropy_run};
const struct kernel_code kernel_cuda_sparse_cross_entropy = {.prepare = sparse_prepare,
                                                             .run = sparse_run};
