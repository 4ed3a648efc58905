/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernel of FusedElementwise.
 */
#include "ops/math/launchers_cuda.h"

#include "base/memory.h"
#include "ops/device/kernel_cuda.h"
#include "ops/math/elementwise_ops.h"
#include "ops/math/outputs.h"

static int prepare(struct kernel_setup *setup)
{
    const struct attr_value *ops = node_attr(setup->node, "ops");
    const int64_t *operands = node_attr(setup->node, "operands")->ints;
    struct cuda_fusion *of_all = setup->state = mem_alloc(sizeof *of_all);
    *of_all = (struct cuda_fusion){
        .type = cuda_type_of(setup->out_types[0].type), .n_in = setup->n_in, .n_steps = ops->n};
    for (int i = 0; i < setup->n_in; i++)
        kernel_offer_reuse(setup, i);
    if (ops->n > CUDA_FUSED_STEPS || setup->n_in > CUDA_FUSED_INPUTS)
        return kernel_setup_fail(setup, "%d ops of %d inputs are more than %d of %d", ops->n,
                                 setup->n_in, CUDA_FUSED_STEPS, CUDA_FUSED_INPUTS);
    for (int i = 0; i < ops->n; i++, operands += FUSED_OPERANDS) {
        int n = operands[1] < 0 ? 1 : 2, op = cuda_fused_op(ops->strings[i], n);
        if (op < 0)
            return kernel_setup_fail(setup, "no loop for %s of %d %s", ops->strings[i], n,
                                     dtype_name(setup->out_types[0].type));
        of_all->steps[i] =
            (struct cuda_fused_step){(int16_t)op, {(int8_t)operands[0], (int8_t)operands[1]}};
    }
    return 0;
}

static int run(struct kernel_call *call)
{
    struct cuda_fusion launch = *(const struct cuda_fusion *)call->state; /* without addresses */
    struct tensor *out = result_outputs(call, 0, 0);
    if (!out || !tensor_count(out))
        return call->err->code;
    launch.n = tensor_count(out);
    launch.out = out->data;
    for (int i = 0; i < call->n_in; i++) {
        launch.in[i] = call->in[i]->data;
        launch.stands[i] = tensor_count(call->in[i]) == 1;
    }
    return cuda_launched(call, cuda_fused(&launch, cuda_compute(call)));
}

const struct kernel_code kernel_cuda_fused = {.prepare = prepare, .run = run};
