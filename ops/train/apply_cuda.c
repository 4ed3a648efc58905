/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernel of all updates: a launch for each variable.
 */
#include "ops/train/apply_cuda.h"

#include "ops/device/kernel_cuda.h"
#include "ops/train/apply.h"

_Static_assert(CUDA_APPLY_SLOTS == APPLY_SLOTS_MAX, "slots of a rule");
_Static_assert(CUDA_APPLY_SCALARS == APPLY_SCALARS_MAX, "scalars of a rule");

static int run(struct kernel_call *call)
{
    struct apply_arguments arguments;
    if (apply_collect(call, &arguments))
        return call->err->code;
    struct cuda_apply_part part = {
        .w = arguments.w, .g = arguments.g, .n = tensor_count(call->in[0])};
    struct cuda_apply launch = {.op = call->node->op->def->name,
                                .type = cuda_type_of(call->in[0]->type),
                                .nesterov = arguments.nesterov,
                                .n_parts = 1,
                                .parts = &part,
                                .fault = cuda_step_fault(call)};
    for (int i = 0; i < CUDA_APPLY_SLOTS; i++)
        part.slots[i] = arguments.slots[i];
    for (int i = 0; i < CUDA_APPLY_SCALARS; i++)
        launch.scalars[i] = arguments.scalars[i];
    int code = KERNEL_DONE;
    if (part.n)
        code = cuda_launched(call, cuda_apply(&launch, cuda_compute(call)));
    return code > 0 ? code : apply_finish(call, code);
}

const struct kernel_code kernel_cuda_apply = {.prepare = apply_check_arguments, .run = run};
