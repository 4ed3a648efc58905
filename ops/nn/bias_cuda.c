/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels of BiasAdd, a broadcast sum, and of BiasAddGrad, a reduction. The value is seen
 * as [outer, channels, inner].
 */
#include "base/memory.h"
#include "ops/device/kernel_cuda.h"
#include "ops/math/outputs.h"
#include "ops/math/reduce_cuda.h"
#include "ops/nn/format.h"

struct bias_state {
    bool nchw;
    cuda_binary_launcher *add; /* of BiasAdd */
};

/* Sets dims to [outer, channels, inner]. */
static void see_channels(const struct shape *shape, bool nchw, int64_t dims[3])
{
    int axis = nchw ? 1 : shape->rank - 1;
    dims[0] = shape_count_of(shape, 0, axis);
    dims[1] = shape->dims[axis];
    dims[2] = shape_count_of(shape, axis + 1, shape->rank);
}

static struct bias_state *state_new(struct kernel_setup *setup)
{
    struct bias_state *state = setup->state = mem_alloc(sizeof *state);
    *state = (struct bias_state){.nchw = format_is_nchw(setup->node)};
    return state;
}

/* ---- BiasAdd ---- */

static int add_prepare(struct kernel_setup *setup)
{
    state_new(setup)->add = cuda_binary("Add", cuda_type_of(setup->in_types[0].type));
    kernel_offer_reuse(setup, 0);
    return 0;
}

static int add_run(struct kernel_call *call)
{
    const struct bias_state *state = call->state;
    const struct tensor *x = call->in[0];
    int64_t dims[3];
    struct tensor *out = result_outputs(call, 0, 0);
    if (!out || !tensor_count(out))
        return call->err->code;
    see_channels(&x->shape, state->nchw, dims);
    struct cuda_binary launch = {.x = x->data, .y = call->in[1]->data, .out = out->data};
    struct shape seen = {3, {dims[0], dims[1], dims[2]}}, bias = shape_matrix(dims[1], 1);
    broadcast_plan(&launch.walk, &seen, (const struct shape *const[]){&seen, &bias}, 2);
    return cuda_launched(call, state->add(&launch, cuda_compute(call)));
}

const struct kernel_code kernel_cuda_bias_add = {.prepare = add_prepare, .run = add_run};

/* ---- BiasAddGrad ---- */

static struct cuda_reduce describe(const struct shape *shape, enum dtype type, bool nchw)
{
    struct cuda_reduce launch = {
        .op = CUDA_SUM, .type = cuda_type_of(type), .rank = 3, .reduced = {true, false, true}};
    see_channels(shape, nchw, launch.dims);
    return launch;
}

static int sum_prepare(struct kernel_setup *setup)
{
    const struct node_output *in = &setup->in_types[0];
    struct bias_state *state = state_new(setup);
    if (!shape_is_known(&in->shape))
        return 0;
    struct cuda_reduce launch = describe(&in->shape, in->type, state->nchw);
    setup->scratch_bytes = cuda_reduce_scratch(&launch);
    return 0;
}

static int sum_run(struct kernel_call *call)
{
    const struct bias_state *state = call->state;
    const struct tensor *x = call->in[0];
    const struct tensor *out = result_outputs(call, 0, 0);
    if (!out)
        return call->err->code;
    struct cuda_reduce launch = describe(&x->shape, x->type, state->nchw);
    return cuda_reduce_call(call, &launch, out);
}

const struct kernel_code kernel_cuda_bias_add_grad = {.prepare = sum_prepare, .run = sum_run};
