/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels of pooling: our own, or cuDNN's (ops/device/dnn_op_cuda.h).
 */
#include "ops/nn/launchers_cuda.h"

#include "base/memory.h"
#include "ops/device/dnn_op_cuda.h"
#include "ops/device/kernel_cuda.h"
#include "ops/nn/pool_shapes.h"
#include "ops/nn/window_dnn_cuda.h"

struct cuda_pool_state {
    struct cuda_dnn_step dnn; /* first */
    const struct pool_form *form;
    enum cuda_pool_form launch;
    struct window window;
};

/* Describes the pooling without addresses; the window is solved. */
static struct cuda_pool describe(enum cuda_pool_form form, enum dtype type, const struct window *w,
                                 const struct shape *image)
{
    int64_t channels = image->dims[w->channels];
    return (struct cuda_pool){.form = form,
                              .type = cuda_type_of(type),
                              .planes = image->dims[0] * (w->nchw ? channels : 1),
                              .block = w->nchw ? 1 : channels,
                              .y = cuda_window_of(&w->y),
                              .x = cuda_window_of(&w->x)};
}

/* ---- by cuDNN ---- */

/* Excludes windows completely outside the image, for which cuDNN may differ from us. */
static bool take_axis(const struct window_axis *a, struct cuda_dnn_axis *taken)
{
    return window_dnn_axis(a, taken) && taken->pad < taken->size;
}

CUDA_DNN_LAUNCHER(own_pool, cuda_pool)

static const struct cuda_dnn_family means = {.launch_bytes = sizeof(struct cuda_pool),
                                             .x = offsetof(struct cuda_pool, image),
                                             .out = offsetof(struct cuda_pool, result),
                                             .own = own_pool},
                                    gradients = {.launch_bytes = sizeof(struct cuda_pool),
                                                 .g = offsetof(struct cuda_pool, gradient),
                                                 .out = offsetof(struct cuda_pool, result),
                                                 .own = own_pool};

static const struct cuda_dnn_family *family_of(const struct cuda_pool *launch)
{
    return launch->form == CUDA_AVG_POOL_GRAD ? &gradients : &means;
}

/* ---- the kernel ---- */

static int pool_prepare(struct kernel_setup *setup)
{
    static const char *const ops[] = {[CUDA_MAX_POOL] = "MaxPool",
                                      [CUDA_MAX_POOL_GRAD] = "MaxPoolGrad",
                                      [CUDA_MAX_POOL_GRAD_GRAD] = "MaxPoolGradGrad",
                                      [CUDA_AVG_POOL] = "AvgPool",
                                      [CUDA_AVG_POOL_GRAD] = "AvgPoolGrad"};
    struct cuda_pool_state *state = setup->state = mem_alloc(sizeof *state);
    *state = (struct cuda_pool_state){.form = pool_form_of(setup->node), .launch = CUDA_MAX_POOL};
    while (state->launch < CUDA_AVG_POOL_GRAD && !node_is(setup->node, ops[state->launch]))
        state->launch++;
    if (window_init(&state->window, setup->node, setup->err))
        return setup->err->code;
    const struct node_output *out = &setup->out_types[0];
    const struct shape *image = state->form->to_image ? &out->shape : &setup->in_types[0].shape;
    struct window w = state->window;
    if (!setup->shapes_known || window_solve(&w, image, setup->err))
        return setup->err->code;
    struct cuda_dnn_op op = {.kind = state->launch == CUDA_AVG_POOL ? CUDA_DNN_AVG_POOL
                                                                    : CUDA_DNN_AVG_POOL_GRAD,
                             .type = cuda_type_of(out->type),
                             .nchw = w.nchw};
    /* cuDNN may compute means, if the image is not empty. */
    if ((state->launch != CUDA_AVG_POOL && state->launch != CUDA_AVG_POOL_GRAD) ||
        !dtype_is_floating(out->type) || !cuda_dnn_take_image(&op, image) ||
        !take_axis(&w.y, &op.y) || !take_axis(&w.x, &op.x))
        return 0;
    struct cuda_pool launch = describe(state->launch, out->type, &w, image);
    return cuda_dnn_choose_op(setup, family_of(&launch), &op, &launch, 0, &state->dnn);
}

static int pool_run(struct kernel_call *call)
{
    const struct cuda_pool_state *state = call->state;
    struct window solved = state->window;
    const struct shape *image = pool_outputs(call, state->form, &solved);
    const struct tensor *out = call->out[0];
    if (!image || !tensor_count(out))
        return call->err->code;
    struct cuda_pool launch = describe(state->launch, out->type, &solved, image);
    launch.image = call->n_in == 2 ? NULL : call->in[0]->data;
    launch.output = call->n_in == 3 ? call->in[1]->data : NULL;
    launch.gradient = call->n_in > 1 ? call->in[call->n_in - 1]->data : NULL;
    launch.result = out->data;
    return cuda_dnn_launch(call, &state->dnn, family_of(&launch), &launch);
}

const struct kernel_code kernel_cuda_pool = {
    .prepare = pool_prepare, .run = pool_run, .release = cuda_dnn_state_release};
