/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels of Softmax, our own or cuDNN's (ops/device/dnn_op_cuda.h), and cross entropies.
 * Features and labels that are broadcast are copied repeatedly into scratch memory.
 */
#include "ops/nn/launchers_cuda.h"

#include "base/memory.h"
#include "ops/array/launchers_cuda.h"
#include "ops/device/dnn_op_cuda.h"
#include "ops/device/kernel_cuda.h"
#include "ops/math/broadcast_cuda.h"
#include "ops/nn/checks.h"

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
    if (!setup->shapes_known || !x->shape.rank || !shape_count(&x->shape))
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
    struct cuda_softmax launch = {.form = state->form, .type = cuda_type_of(x->type), .x = x->data};
    if (softmax_rows_of(call, &launch.rows, &launch.n))
        return call->err->code;
    struct tensor *out = kernel_alloc_output(call, 0, &x->shape);
    if (!out)
        return call->err->code;
    if (!launch.rows)
        return KERNEL_DONE;
    launch.y = out->data;
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
    struct cuda_strided_copy launch = {.element_bytes = (int)dtype_bytes(in->type), .rank = 2};
    struct cuda_broadcast walk;
    *matrix = in->data;
    if (!is_repeated(&in->shape, shape))
        return KERNEL_ENQUEUED;
    cuda_broadcast_plan(&walk, shape, (const struct shape *const[]){&in->shape}, 1);
    for (int i = 0; i < 2; i++) {
        launch.dims[i] = shape->dims[i];
        launch.from_strides[i] = walk.strides[0][i];
    }
    launch.to_strides[0] = shape->dims[1];
    launch.to_strides[1] = 1;
    launch.from = in->data;
    *matrix = launch.to = *scratch;
    *scratch += matrix_bytes(shape, in->type);
    return cuda_launched(call, cuda_strided(&launch, cuda_compute(call)));
}

/* Describes a launch with its outputs allocated. */
static int describe(struct kernel_call *call, enum cuda_softmax_form form,
                    const struct shape *shape, struct cuda_softmax *launch)
{
    const struct tensor *x = call->in[0], *labels = call->in[1];
    struct tensor *loss, *backprop;
    if (cross_entropy_outputs(call, shape, &loss, &backprop))
        return call->err->code;
    *launch = (struct cuda_softmax){.form = form,
                                    .type = cuda_type_of(x->type),
                                    .rows = shape->dims[0],
                                    .n = shape->dims[1],
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
    struct shape shape;
    struct cuda_softmax launch;
    if (cross_entropy_shape_of(call, &shape) || describe(call, CUDA_CROSS_ENTROPY, &shape, &launch))
        return call->err->code;
    if (!launch.rows)
        return KERNEL_DONE;
    const struct tensor *x = call->in[0], *labels = call->in[1];
    size_t bytes = broadcast_scratch(&x->shape, &labels->shape, &shape, x->type);
    char *scratch = cuda_scratch(call, bytes);
    if (bytes && !scratch)
        return call->err->code;
    int code = spread(call, x, &shape, &scratch, &launch.x);
    if (code == KERNEL_ENQUEUED)
        code = spread(call, labels, &shape, &scratch, &launch.labels);
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
    if (sparse_cross_entropy_check(call) ||
        describe(call, CUDA_SPARSE_CROSS_ENTROPY, &call->in[0]->shape, &launch))
        return call->err->code;
    if (!launch.rows)
        return KERNEL_DONE;
    return cuda_launched(call, cuda_softmax(&launch, cuda_compute(call)));
}

const struct kernel_code kernel_cuda_cross_entropy = {.prepare = entropy_prepare,
                                                      .run = entropy_run};
const struct kernel_code kernel_cuda_sparse_cross_entropy = {.prepare = sparse_prepare,
                                                             .run = sparse_run};
