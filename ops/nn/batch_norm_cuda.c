/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels of batch normalization and its gradient: our own, or cuDNN's
 * (ops/device/dnn_op_cuda.h).
 */
#include "ops/nn/launchers_cuda.h"

#include "base/memory.h"
#include "ops/device/dnn_op_cuda.h"
#include "ops/device/kernel_cuda.h"
#include "ops/math/outputs.h"
#include "ops/nn/checks.h"

struct cuda_norm_state {
    struct cuda_dnn_step dnn; /* first */
    struct norm norm;
};

/* Describes the image, and how it is normalized. */
static void describe(const struct norm *norm, enum dtype type, const struct shape *image,
                     struct cuda_batch_norm *launch)
{
    const int64_t *dims = image->dims;
    *launch = (struct cuda_batch_norm){.type = cuda_type_of(type),
                                       .outer = norm->nchw ? dims[0] : dims[0] * dims[1] * dims[2],
                                       .channels = dims[norm->nchw ? 1 : 3],
                                       .inner = norm->nchw ? dims[2] * dims[3] : 1,
                                       .training = norm->training,
                                       .epsilon = norm->epsilon};
}

static size_t scratch_for(const struct cuda_batch_norm *launch)
{
    return cuda_batch_norm_scratch(launch->outer, launch->channels, launch->inner);
}

/* ---- by cuDNN ---- */

CUDA_DNN_LAUNCHER(own_norm, cuda_batch_norm)
CUDA_DNN_LAUNCHER(before_norm, cuda_batch_norm_before)
CUDA_DNN_LAUNCHER(after_norm, cuda_batch_norm_after)

static void norm_operands(const void *launch, struct cuda_dnn_operands *operands)
{
    const struct cuda_batch_norm *l = launch;
    char *own = l->scratch;
    bool makes_moments = !l->g && l->training;
    operands->scale = l->scale;
    operands->offset = l->offset;
    operands->mean = l->mean;
    operands->variance = l->g ? own : l->variance;
    operands->vectors[0] = makes_moments ? own : l->out[1];
    own += (size_t)l->channels * (size_t)cuda_float_bytes(l->type);
    operands->vectors[1] = makes_moments ? own : l->out[2];
}

static void bind_norm(void *launch, const struct cuda_trial_memory *memory)
{
    struct cuda_batch_norm *l = launch;
    l->scale = memory->vectors[0];
    l->offset = memory->vectors[1];
    l->mean = memory->vectors[2];
    l->variance = memory->vectors[3];
    for (int i = 1; i < 5; i++)
        l->out[i] = memory->vectors[3 + i];
    l->scratch = memory->scratch;
}

#define FAMILY(...)                                                                                \
    {                                                                                              \
        .launch_bytes = sizeof(struct cuda_batch_norm), .x = offsetof(struct cuda_batch_norm, x),  \
        .out = offsetof(struct cuda_batch_norm, out), .own = own_norm, .operands = norm_operands,  \
        .before = before_norm, .after = after_norm, .bind = bind_norm, __VA_ARGS__                 \
    }
static const struct cuda_dnn_family families[] = {FAMILY(.g = 0),
                                                  FAMILY(.g = offsetof(struct cuda_batch_norm, g))};

/* ---- the kernels ---- */

static int prepare(struct kernel_setup *setup)
{
    bool backward = setup->form == NORM_GRAD;
    const struct node_output *x = &setup->out_types[0];
    struct cuda_norm_state *state = setup->state = mem_alloc(sizeof *state);
    struct cuda_batch_norm launch;
    norm_init(&state->norm, setup->node);
    if (!setup->shapes_known)
        return 0;
    describe(&state->norm, x->type, &x->shape, &launch);
    setup->scratch_bytes = scratch_for(&launch);
    /* cuDNN has no gradient for given statistics, no variance of one position, and 32-bit vectors
     * with 16-bit images. */
    struct cuda_dnn_op op = {.kind = backward               ? CUDA_DNN_NORM_GRAD
                                     : state->norm.training ? CUDA_DNN_NORM_TRAINING
                                                            : CUDA_DNN_NORM_INFERENCE,
                             .type = launch.type,
                             .nchw = state->norm.nchw,
                             .epsilon = state->norm.epsilon};
    bool fits = state->norm.training ? launch.outer * launch.inner > 1 : !backward;
    if (!fits || cuda_float_bytes(launch.type) <= 2 || !(state->norm.epsilon >= 0) ||
        !cuda_dnn_take_image(&op, &x->shape))
        return 0;
    return cuda_dnn_choose_op(setup, &families[backward], &op, &launch, setup->scratch_bytes,
                              &state->dnn);
}

/* Without positions the statistics are NaN, as on the CPU. */
static int launch_it(struct kernel_call *call, struct cuda_batch_norm *launch)
{
    const struct cuda_norm_state *state = call->state;
    if (!launch->channels)
        return KERNEL_DONE;
    launch->scratch = cuda_scratch(call, scratch_for(launch));
    if (!launch->scratch)
        return call->err->code;
    return cuda_dnn_launch(call, &state->dnn, &families[launch->g != NULL], launch);
}

static int run(struct kernel_call *call)
{
    const struct cuda_norm_state *state = call->state;
    int back = call->form;
    const struct tensor *x = call->in[back];
    struct cuda_batch_norm launch;
    if (!result_outputs(call, 0, 0))
        return call->err->code;
    describe(&state->norm, x->type, &x->shape, &launch);
    for (int i = 0; i < 5; i++)
        launch.out[i] = call->out[i]->data;
    launch.g = back ? call->in[0]->data : NULL;
    launch.x = x->data;
    launch.scale = call->in[1 + back]->data;
    launch.offset = back ? NULL : call->in[2]->data;
    launch.mean = call->in[3]->data;
    launch.variance = call->in[4]->data;
    return launch_it(call, &launch);
}

const struct kernel_code kernel_cuda_batch_norm = {
    .prepare = prepare, .run = run, .release = cuda_dnn_state_release, .form = NORM};
const struct kernel_code kernel_cuda_batch_norm_grad = {
    .prepare = prepare, .run = run, .release = cuda_dnn_state_release, .form = NORM_GRAD};
