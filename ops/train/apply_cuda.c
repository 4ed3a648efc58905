/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernel of all updates: a launch for as many variables as fit.
 */
#include "ops/train/apply_cuda.h"

#include <string.h>

#include "base/memory.h"
#include "ops/device/kernel_cuda.h"
#include "ops/train/apply.h"

_Static_assert(CUDA_APPLY_SLOTS == APPLY_SLOTS_MAX, "slots of a rule");
_Static_assert(CUDA_APPLY_SCALARS == APPLY_SCALARS_MAX, "scalars of a rule");

struct cuda_apply_state {
    cuda_apply_launcher *launch;
    struct apply_inputs inputs;
};

/* Launches updates by one rule, with the scalars of the first. */
static int launch(struct kernel_call *call, const struct apply_arguments *first,
                  const struct cuda_apply_part *parts, int n_parts)
{
    const struct cuda_apply_state *state = call->state;
    struct cuda_apply launch = {.type = cuda_type_of(call->in[0]->type),
                                .gradient = cuda_type_of(first->g_type),
                                .nesterov = first->nesterov,
                                .n_parts = n_parts,
                                .parts = parts,
                                .fault = cuda_step_fault(call)};
    for (int i = 0; i < CUDA_APPLY_SCALARS; i++)
        launch.scalars[i] = first->scalars[i];
    return cuda_launched(call, state->launch(&launch, cuda_compute(call)));
}

static int prepare(struct kernel_setup *setup)
{
    struct cuda_apply_state *state = setup->state = mem_alloc(sizeof *state);
    int code = apply_find_inputs(setup, &state->inputs);
    state->launch = cuda_apply(state->inputs.rule);
    return code;
}

static int run(struct kernel_call *call)
{
    const struct apply_inputs *in = &((const struct cuda_apply_state *)call->state)->inputs;
    struct apply_arguments arguments[APPLY_BATCH_MAX];
    struct cuda_apply_part parts[APPLY_BATCH_MAX];
    int result = KERNEL_DONE;
    if (apply_open(call, in))
        return call->err->code;
    for (int first = 0; first < in->n && result <= 0; first += APPLY_BATCH_MAX) {
        int n = in->n - first < APPLY_BATCH_MAX ? in->n - first : APPLY_BATCH_MAX;
        int64_t all = 0;
        apply_collect(call, in, first, n, arguments);
        for (int i = 0; i < n; i++) {
            const struct apply_arguments *u = &arguments[i];
            parts[i] = (struct cuda_apply_part){.w = u->w, .g = u->g, .n = u->n};
            memcpy(parts[i].slots, u->slots, sizeof parts[i].slots);
            all += u->n;
        }
        if (all)
            result = launch(call, arguments, parts, n);
    }
    return result > 0 ? result : apply_finish(call, result);
}

const struct kernel_code kernel_cuda_apply = {.prepare = prepare, .run = run};
const struct kernel_code kernel_cuda_fused_apply = {.prepare = prepare, .run = run};
