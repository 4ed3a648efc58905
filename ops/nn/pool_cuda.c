/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels of pooling: our own, or cuDNN's (ops/device/dnn_op_cuda.h).
 */
#include "base/memory.h"
#include "ops/device/dnn_op_cuda.h"
#include "ops/device/kernel_cuda.h"
#include "ops/nn/launchers_cuda.h"
#include "ops/nn/window_dnn_cuda.h"

struct cuda_pool_state {
    struct cuda_dnn_step dnn; /* first */
    struct pooling pool;
};

/* Describes the pooling without addresses; the window is solved. */
static struct cuda_pool describe(const struct pooling *pool, enum dtype type,
                                 const struct window *w, const struct shape *image)
{
    int64_t channels = image->dims[w->channels];
    return (struct cuda_pool){.kind = pool->kind,
                              .type = cuda_type_of(type),
                              .masked = pool->masked,
                              .planes = image->dims[0] * (w->nchw ? channels : 1),
                              .block = w->nchw ? 1 : channels,
                              .y = w->y,
                              .x = w->x};
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
    return launch->kind == POOL_AVG_GRAD ? &gradients : &means;
}

/* ---- the kernel ---- */

static int pool_prepare(struct kernel_setup *setup)
{
    struct cuda_pool_state *state = setup->state = mem_alloc(sizeof *state);
    if (pool_init(&state->pool, setup))
        return setup->err->code;
    enum pool_kind kind = state->pool.kind;
    const struct node_output *out = &setup->out_types[0];
    const struct shape *image =
        state->pool.form->to_image ? &out->shape : &setup->in_types[0].shape;
    struct window w = state->pool.window;
    if (!setup->shapes_known || window_solve(&w, image, setup->err))
        return setup->err->code;
    struct cuda_dnn_op op = {.kind = kind == POOL_AVG ? CUDA_DNN_AVG_POOL : CUDA_DNN_AVG_POOL_GRAD,
                             .type = cuda_type_of(out->type),
                             .nchw = w.nchw};
    /* cuDNN may compute means, if the image is not empty. */
    if ((kind != POOL_AVG && kind != POOL_AVG_GRAD) || !dtype_is_floating(out->type) ||
        !cuda_dnn_take_image(&op, image) || !take_axis(&w.y, &op.y) || !take_axis(&w.x, &op.x))
        return 0;
    struct cuda_pool launch = describe(&state->pool, out->type, &w, image);
    return cuda_dnn_choose_op(setup, family_of(&launch), &op, &launch, 0, &state->dnn);
}

static int pool_run(struct kernel_call *call)
{
    const struct cuda_pool_state *state = call->state;
    struct window solved;
    const struct shape *image = pool_outputs(call, &state->pool, &solved);
    const struct tensor *out = call->out[0];
    if (!image || !tensor_count(out))
        return call->err->code;
    struct cuda_pool launch = describe(&state->pool, out->type, &solved, image);
    launch.image = call->n_in == 2 ? NULL : call->in[0]->data;
    launch.output = call->n_in == 3 ? call->in[1]->data : NULL;
    launch.gradient = call->n_in > 1 ? call->in[call->n_in - 1]->data : NULL;
    if (launch.kind >= POOL_WITH_PLACE)
        launch.place = call->n_out == 2 ? call->out[1]->data : call->in[0]->data;
    launch.result = out->data;
    return cuda_dnn_launch(call, &state->dnn, family_of(&launch), &launch);
}

const struct kernel_code kernel_cuda_pool = {
    .prepare = pool_prepare, .run = pool_run, .release = cuda_dnn_state_release};
