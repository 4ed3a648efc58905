/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernel of reductions. Reducing dimensions of 1 launches nothing.
 */
#include "ops/math/reduce_cuda.h"

#include "base/memory.h"
#include "ops/device/kernel_cuda.h"
#include "ops/math/results.h"

struct cuda_reduce_state {
    enum cuda_reduction op;
    bool keep_dims, aliases;
};

static void describe(struct cuda_reduce *launch, const struct cuda_reduce_state *state,
                     enum dtype type, const struct shape *shape, unsigned axes)
{
    *launch =
        (struct cuda_reduce){.op = state->op, .type = cuda_type_of(type), .rank = shape->rank};
    for (int i = 0; i < shape->rank; i++) {
        launch->dims[i] = shape->dims[i];
        launch->reduced[i] = axes >> i & 1;
    }
}

int cuda_reduce_call(struct kernel_call *call, struct cuda_reduce *launch, const struct tensor *out)
{
    size_t bytes = cuda_reduce_scratch(launch);
    if (!tensor_count(out))
        return KERNEL_DONE;
    launch->scratch = cuda_scratch(call, bytes);
    if (bytes && !launch->scratch)
        return call->err->code;
    launch->x = call->in[0]->data;
    launch->y = out->data;
    return cuda_launched(call, cuda_reduce(launch, cuda_compute(call)));
}

static int reduce_prepare(struct kernel_setup *setup)
{
    const struct node_output *in = &setup->in_types[0];
    struct cuda_reduce_state *state = setup->state = mem_alloc(sizeof *state);
    struct cuda_reduce launch;
    unsigned axes;
    *state = (struct cuda_reduce_state){.op = cuda_reduction_of(setup->node->op->def->name),
                                        .keep_dims = node_bool(setup->node, "keep_dims")};
    if (!setup->in_values[1] || !shape_is_known(&in->shape))
        return 0;
    if (reduce_axes(setup->in_values[1], in->shape.rank, &axes, setup->err))
        return setup->err->code;
    bool is_copy = true; /* each result is one element */
    for (int i = 0; i < in->shape.rank; i++)
        is_copy &= !(axes >> i & 1) || in->shape.dims[i] == 1;
    if (is_copy) {
        setup->out[0].forward = FORWARD_ALIAS;
        state->aliases = true;
        return 0;
    }
    describe(&launch, state, in->type, &in->shape, axes);
    setup->scratch_bytes = cuda_reduce_scratch(&launch);
    return 0;
}

static int reduce_run(struct kernel_call *call)
{
    const struct cuda_reduce_state *state = call->state;
    const struct tensor *x = call->in[0], *indices = call->in[1];
    struct cuda_reduce launch;
    unsigned axes;
    if (reduce_axes(indices, x->shape.rank, &axes, call->err))
        return call->err->code;
    struct shape shape = reduce_shape(&x->shape, axes, state->keep_dims);
    if (state->aliases)
        return kernel_alias_output(call, 0, 0, &shape) ? KERNEL_DONE : call->err->code;
    if (state->op == CUDA_MEAN && !dtype_is_floating(x->type) && !tensor_count(x) &&
        shape_count(&shape))
        return kernel_fail(call, "the mean of no integers: input %s", shape_text(&x->shape));
    describe(&launch, state, x->type, &x->shape, axes);
    if (shape_count(&shape) == tensor_count(x) && (state->op == CUDA_SUM || state->op == CUDA_MEAN))
        launch.op = CUDA_PROD; /* exact for one element, whereas 0 + -0 is 0 */
    const struct tensor *out = kernel_alloc_output(call, 0, &shape);
    return out ? cuda_reduce_call(call, &launch, out) : call->err->code;
}

const struct kernel_code kernel_cuda_reduce = {.prepare = reduce_prepare, .run = reduce_run};
