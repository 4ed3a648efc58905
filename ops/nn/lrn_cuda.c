/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels of LRN and its gradient, whose inputs are what flows back, x and y.
 */
#include "ops/nn/lrn_cuda.h"

#include "base/memory.h"
#include "ops/device/kernel_cuda.h"
#include "ops/nn/lrn.h"

struct cuda_lrn_state {
    struct lrn lrn;
    size_t scratch; /* bytes that every run has */
};

static int lrn_prepare(struct kernel_setup *setup)
{
    const struct node_output *in = &setup->in_types[0];
    struct cuda_lrn_state *state = mem_alloc(sizeof *state);
    setup->state = state;
    lrn_init(&state->lrn, setup->node);
    state->scratch = 0;
    if (setup->n_in == 3 && shape_is_known(&in->shape))
        state->scratch = cuda_lrn_scratch(cuda_type_of(in->type), shape_count(&in->shape));
    setup->scratch_bytes = state->scratch;
    return 0;
}

static int lrn_run(struct kernel_call *call)
{
    const struct cuda_lrn_state *state = call->state;
    const struct lrn *lrn = &state->lrn;
    const struct tensor *in = call->in[0];
    bool backward = call->n_in == 3;
    if (lrn_check(call))
        return call->err->code;
    struct tensor *out = kernel_alloc_output(call, 0, &in->shape);
    if (!out)
        return call->err->code;
    if (!tensor_count(out))
        return KERNEL_DONE;
    int64_t channels = in->shape.dims[3];
    struct cuda_lrn launch = {.type = cuda_type_of(in->type),
                              .positions = tensor_count(in) / channels,
                              .channels = channels,
                              .radius = lrn->radius < channels ? lrn->radius : channels,
                              .bias = lrn->bias,
                              .alpha = lrn->alpha,
                              .beta = lrn->beta,
                              .x = in->data,
                              .out = out->data};
    if (backward) {
        size_t bytes = cuda_lrn_scratch(launch.type, tensor_count(in));
        launch.g = in->data;
        launch.x = call->in[1]->data;
        launch.y = call->in[2]->data;
        launch.scratch = cuda_scratch(call, state->scratch, bytes);
        if (!launch.scratch)
            return call->err->code;
    }
    return cuda_launched(call, cuda_lrn(&launch, cuda_compute(call)));
}

const struct kernel_code kernel_cuda_lrn = {.prepare = lrn_prepare, .run = lrn_run};
