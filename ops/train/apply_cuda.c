/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernel of all updates: a launch for as many variables as fit.
 */
#include "ops/train/apply_cuda.h"

#include "base/memory.h"
#include "ops/device/kernel_cuda.h"

struct cuda_apply_state {
    cuda_apply_launcher *launch;
    struct apply_inputs inputs;
};

static int prepare(struct kernel_setup *setup)
{
    struct cuda_apply_state *state = setup->state = mem_alloc(sizeof *state);
    int code = apply_find_inputs(setup, &state->inputs);
    state->launch = cuda_apply(state->inputs.rule);
    return code;
}

static int run(struct kernel_call *call)
{
    const struct cuda_apply_state *state = call->state;
    const struct apply_inputs *in = &state->inputs;
    struct apply_arguments arguments[APPLY_BATCH_MAX];
    struct cuda_apply launch = {.type = cuda_type_of(call->in[0]->type),
                                .parts = arguments,
                                .fault = cuda_step_fault(call)};
    int result = KERNEL_DONE;
    if (apply_open(call, in))
        return call->err->code;
    for (int first = 0; first < in->n && result <= 0; first += APPLY_BATCH_MAX) {
        int n = in->n - first < APPLY_BATCH_MAX ? in->n - first : APPLY_BATCH_MAX;
        int64_t all = 0;
        apply_collect(call, in, first, n, arguments);
        for (int i = 0; i < n; i++)
            all += arguments[i].n;
        launch.gradient = cuda_type_of(arguments->g_type);
        launch.n_parts = n;
        if (all)
            result = cuda_launched(call, state->launch(&launch, cuda_compute(call)));
    }
    return result > 0 ? result : apply_finish(call, result);
}

const struct kernel_code kernel_cuda_apply = {.prepare = prepare, .run = run};
const struct kernel_code kernel_cuda_fused_apply = {.prepare = prepare, .run = run};
