/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels of LRN, our own or cuDNN's (ops/device/dnn_op_cuda.h), and of its gradient,
 * whose inputs are the gradient of y, x and y.
 */
#include "ops/nn/launchers_cuda.h"

#include "base/memory.h"
#include "ops/device/dnn_op_cuda.h"
#include "ops/device/kernel_cuda.h"
#include "ops/math/outputs.h"
#include "ops/nn/checks.h"

struct cuda_lrn_state {
    struct cuda_dnn_step dnn; /* first */
    struct lrn lrn;
};

/* Describes the launch without addresses. */
static struct cuda_lrn describe(const struct lrn *lrn, enum dtype type, const struct shape *image)
{
    int64_t channels = image->dims[3];
    return (struct cuda_lrn){.type = cuda_type_of(type),
                             .positions = shape_count(image) / channels,
                             .channels = channels,
                             .radius = lrn->radius < channels ? lrn->radius : channels,
                             .bias = lrn->bias,
                             .alpha = lrn->alpha,
                             .beta = lrn->beta};
}

/* ---- by cuDNN ---- */

/* Limits from cuDNN's manual: the maximum of neighbours, and minima of parameters, which have the
 * elements' type. */
#define DNN_NEIGHBOURS 16
#define DNN_BIAS 1e-5
#define DNN_BETA 0.01

CUDA_DNN_LAUNCHER(own_lrn, cuda_lrn)

static const struct cuda_dnn_family family = {.launch_bytes = sizeof(struct cuda_lrn),
                                              .x = offsetof(struct cuda_lrn, x),
                                              .out = offsetof(struct cuda_lrn, out),
                                              .own = own_lrn};

/* ---- the kernel ---- */

static int lrn_prepare(struct kernel_setup *setup)
{
    const struct node_output *in = &setup->in_types[0];
    struct cuda_lrn_state *state = setup->state = mem_alloc(sizeof *state);
    lrn_init(&state->lrn, setup->node);
    if (setup->n_in == 3 || !setup->shapes_known || !shape_count(&in->shape))
        return 0;
    struct cuda_lrn launch = describe(&state->lrn, in->type, &in->shape);
    if (launch.radius < 0 || launch.radius > (DNN_NEIGHBOURS - 1) / 2)
        return 0;
    int neighbours = 2 * (int)launch.radius + 1;
    struct cuda_dnn_op op = {.kind = CUDA_DNN_LRN,
                             .type = launch.type,
                             .neighbours = neighbours,
                             .alpha = launch.alpha * neighbours,
                             .beta = launch.beta,
                             .bias = launch.bias};
    if (cuda_float_bytes(launch.type) <= 2 || !(launch.bias >= DNN_BIAS) ||
        !(launch.beta >= DNN_BETA) || !cuda_dnn_take_image(&op, &in->shape))
        return 0;
    return cuda_dnn_choose_op(setup, &family, &op, &launch, 0, &state->dnn);
}

static int lrn_run(struct kernel_call *call)
{
    const struct cuda_lrn_state *state = call->state;
    const struct tensor *in = call->in[0];
    bool backward = call->n_in == 3;
    struct tensor *out = result_outputs(call, 0, 0);
    if (!out || !tensor_count(out))
        return call->err->code;
    struct cuda_lrn launch = describe(&state->lrn, in->type, &in->shape);
    launch.x = call->in[backward]->data;
    launch.out = out->data;
    if (backward) {
        launch.g = in->data;
        launch.y = call->in[2]->data;
    }
    return cuda_dnn_launch(call, &state->dnn, &family, &launch);
}

const struct kernel_code kernel_cuda_lrn = {
    .prepare = lrn_prepare, .run = lrn_run, .release = cuda_dnn_state_release};
