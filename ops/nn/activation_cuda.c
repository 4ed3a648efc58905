/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernel of what flows back through an activation; activations themselves are
 * element-wise ops as others.
 */
#include "ops/nn/activation.h"

#include "ops/device/kernel_cuda.h"
#include "ops/math/binary_cuda.h"

static int prepare(struct kernel_setup *setup)
{
    cuda_offer_reuse(setup, 0);
    cuda_offer_reuse(setup, 1);
    return 0;
}

static int run(struct kernel_call *call)
{
    const struct tensor *x = call->in[0], *y = call->in[1];
    if (activation_check_shapes(call))
        return call->err->code;
    struct tensor *out = kernel_alloc_output(call, 0, &x->shape);
    if (!out)
        return call->err->code;
    if (!tensor_count(out))
        return KERNEL_DONE;
    struct cuda_binary launch = {
        .op = call->node->op->def->name,
        .type = cuda_type_of(x->type),
        .walk = {.rank = 1, .dims = {tensor_count(out)}, .strides = {{1}, {1}}},
        .x = x->data,
        .y = y->data,
        .out = out->data};
    return cuda_launched(call, cuda_arithmetic(&launch, cuda_compute(call)));
}

const struct kernel_code kernel_cuda_activation_grad = {.prepare = prepare, .run = run};
