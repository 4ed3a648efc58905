/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernel of L2Loss: a reduction of all elements.
 */
#include "base/memory.h"
#include "ops/device/kernel_cuda.h"
#include "ops/math/launchers_cuda.h"

struct loss_state {
    size_t scratch; /* bytes that every run has */
};

static struct cuda_reduce describe(const struct shape *shape, enum dtype type)
{
    return (struct cuda_reduce){.op = CUDA_L2_LOSS,
                                .type = cuda_type_of(type),
                                .rank = 1,
                                .dims = {shape_count(shape)},
                                .reduced = {true}};
}

static int prepare(struct kernel_setup *setup)
{
    const struct node_output *in = &setup->in_types[0];
    struct loss_state *state = mem_alloc(sizeof *state);
    setup->state = state;
    state->scratch = 0;
    if (!shape_is_known(&in->shape))
        return 0;
    struct cuda_reduce launch = describe(&in->shape, in->type);
    setup->scratch_bytes = state->scratch = cuda_reduce_scratch(&launch);
    return 0;
}

static int run(struct kernel_call *call)
{
    const struct loss_state *state = call->state;
    const struct tensor *x = call->in[0];
    struct cuda_reduce launch = describe(&x->shape, x->type);
    struct tensor *out = kernel_alloc_output(call, 0, &SHAPE_SCALAR);
    if (!out)
        return call->err->code;
    size_t bytes = cuda_reduce_scratch(&launch);
    launch.scratch = cuda_scratch(call, state->scratch, bytes);
    if (bytes && !launch.scratch)
        return call->err->code;
    launch.x = x->data;
    launch.y = out->data;
    return cuda_launched(call, cuda_reduce(&launch, cuda_compute(call)));
}

const struct kernel_code kernel_cuda_l2_loss = {.prepare = prepare, .run = run};
