/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernel of what flows back through an activation; activations themselves are
 * element-wise ops as others.
 */
#include "ops/nn/checks.h"

#include "base/memory.h"
#include "ops/device/kernel_cuda.h"
#include "ops/math/launchers_cuda.h"

static int prepare(struct kernel_setup *setup)
{
    cuda_binary_launcher **launcher = setup->state = mem_alloc(sizeof *launcher);
    *launcher = cuda_binary(setup->node->op->def->name, cuda_type_of(setup->in_types[0].type));
    cuda_offer_reuse(setup, 0);
    cuda_offer_reuse(setup, 1);
    return 0;
}

static int run(struct kernel_call *call)
{
    cuda_binary_launcher *const *launcher = call->state;
    const struct tensor *x = call->in[0], *y = call->in[1];
    if (activation_check_shapes(call))
        return call->err->code;
    struct tensor *out = kernel_alloc_nonempty(call, 0, &x->shape);
    if (!out)
        return call->err->code;
    struct cuda_binary launch = {
        .walk = {.rank = 1, .dims = {tensor_count(out)}, .strides = {{1}, {1}}},
        .x = x->data,
        .y = y->data,
        .out = out->data};
    return cuda_launched(call, (*launcher)(&launch, cuda_compute(call)));
}

const struct kernel_code kernel_cuda_activation_grad = {.prepare = prepare, .run = run};
