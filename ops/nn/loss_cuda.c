/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernel of L2Loss: a reduction of all elements.
 */
#include "ops/device/kernel_cuda.h"
#include "ops/math/reduce_cuda.h"

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
    if (!shape_is_known(&in->shape))
        return 0;
    struct cuda_reduce launch = describe(&in->shape, in->type);
    setup->scratch_bytes = cuda_reduce_scratch(&launch);
    return 0;
}

static int run(struct kernel_call *call)
{
    const struct tensor *x = call->in[0], *out = kernel_alloc_output(call, 0, &SHAPE_SCALAR);
    struct cuda_reduce launch = describe(&x->shape, x->type);
    return out ? cuda_reduce_call(call, &launch, out) : call->err->code;
}

const struct kernel_code kernel_cuda_l2_loss = {.prepare = prepare, .run = run};
