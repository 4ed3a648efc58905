/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels of batch normalization and its gradient.
 */
#include "ops/nn/batch_norm_cuda.h"

#include "base/memory.h"
#include "ops/device/kernel_cuda.h"
#include "ops/nn/batch_norm_shapes.h"

struct cuda_norm_state {
    struct norm norm;
    size_t scratch; /* bytes that every run has */
};

/* The image, and how it is normalized. */
static void describe(const struct norm *norm, enum dtype type, const struct shape *image,
                     struct cuda_batch_norm *launch)
{
    const int64_t *dims = image->dims;
    *launch = (struct cuda_batch_norm){.type = cuda_type_of(type),
                                       .outer = norm->nchw ? dims[0] : dims[0] * dims[1] * dims[2],
                                       .channels = norm_channels(norm, image),
                                       .inner = norm->nchw ? dims[2] * dims[3] : 1,
                                       .training = norm->training,
                                       .epsilon = norm->epsilon};
}

static size_t scratch_for(const struct cuda_batch_norm *launch)
{
    return cuda_batch_norm_scratch(launch->outer, launch->channels, launch->inner);
}

static int prepare(struct kernel_setup *setup)
{
    const struct node_output *x = &setup->out_types[0];
    struct cuda_norm_state *state = mem_alloc(sizeof *state);
    struct cuda_batch_norm launch;
    norm_init(&state->norm, setup->node);
    setup->state = state;
    state->scratch = 0;
    if (shape_is_known(&x->shape) && x->shape.rank == 4) {
        describe(&state->norm, x->type, &x->shape, &launch);
        state->scratch = scratch_for(&launch);
    }
    setup->scratch_bytes = state->scratch;
    return 0;
}

/* Without positions the statistics are those of nothing: NaN, as on the CPU. */
static int launch_it(struct kernel_call *call, struct cuda_batch_norm *launch)
{
    const struct cuda_norm_state *state = call->state;
    if (!launch->channels)
        return KERNEL_DONE;
    launch->scratch = cuda_scratch(call, state->scratch, scratch_for(launch));
    if (!launch->scratch)
        return call->err->code;
    return cuda_launched(call, cuda_batch_norm(launch, cuda_compute(call)));
}

static int norm_run(struct kernel_call *call)
{
    const struct cuda_norm_state *state = call->state;
    const struct tensor *x = call->in[0];
    struct cuda_batch_norm launch;
    if (norm_check(call, &state->norm))
        return call->err->code;
    describe(&state->norm, x->type, &x->shape, &launch);
    int64_t n = launch.channels;
    if (norm_outputs(call, &x->shape, (int64_t[]){n, n, n, n}, launch.out))
        return call->err->code;
    launch.x = x->data;
    launch.scale = call->in[1]->data;
    launch.offset = call->in[2]->data;
    launch.mean = call->in[3]->data;
    launch.variance = call->in[4]->data;
    return launch_it(call, &launch);
}

static int norm_grad_run(struct kernel_call *call)
{
    const struct cuda_norm_state *state = call->state;
    const struct tensor *x = call->in[1];
    struct cuda_batch_norm launch;
    if (norm_grad_check(call, &state->norm))
        return call->err->code;
    describe(&state->norm, x->type, &x->shape, &launch);
    int64_t n = launch.channels;
    if (norm_outputs(call, &x->shape, (int64_t[]){n, n, 0, 0}, launch.out))
        return call->err->code;
    launch.g = call->in[0]->data;
    launch.x = x->data;
    launch.scale = call->in[2]->data;
    launch.mean = call->in[3]->data;
    launch.variance = call->in[4]->data;
    return launch_it(call, &launch);
}

const struct kernel_code kernel_cuda_batch_norm = {.prepare = prepare, .run = norm_run};
const struct kernel_code kernel_cuda_batch_norm_grad = {.prepare = prepare, .run = norm_grad_run};
