/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernel of FusedElementwise.
 */
#include "ops/math/launchers_cuda.h"

#include "base/memory.h"
#include "ops/device/kernel_cuda.h"
#include "ops/math/results.h"

struct cuda_fused_state {
    const struct attr_value *operands; /* the node's */
    struct cuda_fusion launch;         /* without addresses */
};

static int prepare(struct kernel_setup *setup)
{
    struct cuda_fused_state *state = setup->state = mem_alloc(sizeof *state);
    state->operands = node_attr(setup->node, "operands");
    state->launch = (struct cuda_fusion){.type = cuda_type_of(setup->out_types[0].type),
                                         .n_in = setup->n_in,
                                         .n_steps = node_attr(setup->node, "ops")->n};
    for (int i = 0; i < setup->n_in && setup->out[0].forward == FORWARD_NONE; i++)
        kernel_offer_reuse(setup, i);
    const struct attr_value *ops = node_attr(setup->node, "ops");
    const int64_t *operands = state->operands->ints;
    if (ops->n > CUDA_FUSED_STEPS || setup->n_in > CUDA_FUSED_INPUTS)
        return kernel_setup_fail(setup, "%d ops of %d inputs are more than %d of %d", ops->n,
                                 setup->n_in, CUDA_FUSED_STEPS, CUDA_FUSED_INPUTS);
    for (int i = 0; i < ops->n; i++, operands += FUSED_OPERANDS) {
        int n = operands[1] < 0 ? 1 : 2, op = cuda_fused_op(ops->strings[i], n);
        if (op < 0)
            return kernel_setup_fail(setup, "no loop for %s of %d %s", ops->strings[i], n,
                                     dtype_name(setup->out_types[0].type));
        state->launch.steps[i] =
            (struct cuda_fused_step){(int16_t)op, {(int8_t)operands[0], (int8_t)operands[1]}};
    }
    return 0;
}

static int run(struct kernel_call *call)
{
    const struct cuda_fused_state *state = call->state;
    struct cuda_fusion launch = state->launch;
    const struct shape *in[CUDA_FUSED_INPUTS];
    struct shape shape;
    for (int i = 0; i < call->n_in; i++)
        in[i] = &call->in[i]->shape;
    if (fused_check_shapes(state->operands, in, call->n_in, &shape, call->err))
        return call->err->code;
    struct tensor *out = kernel_alloc_output(call, 0, &shape);
    if (!out)
        return call->err->code;
    launch.n = tensor_count(out);
    if (!launch.n)
        return KERNEL_DONE;
    launch.out = out->data;
    for (int i = 0; i < call->n_in; i++) {
        launch.in[i] = call->in[i]->data;
        launch.stands[i] = tensor_count(call->in[i]) == 1;
    }
    return cuda_launched(call, cuda_fused(&launch, cuda_compute(call)));
}

const struct kernel_code kernel_cuda_fused = {.prepare = prepare, .run = run};
