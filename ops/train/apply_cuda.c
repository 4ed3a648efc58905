/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels of all updates: a launch per variable, or for as many as fit.
 */
#include "ops/train/apply_cuda.h"

#include "base/memory.h"
#include "ops/device/kernel_cuda.h"
#include "ops/train/apply.h"

_Static_assert(CUDA_APPLY_SLOTS == APPLY_SLOTS_MAX, "slots of a rule");
_Static_assert(CUDA_APPLY_SCALARS == APPLY_SCALARS_MAX, "scalars of a rule");

struct cuda_apply_state {
    cuda_apply_launcher *launch;
    struct apply_inputs form; /* of one variable, or: */
    struct apply_batch batch; /* of several */
};

static struct cuda_apply_part apply_part(const struct apply_arguments *arguments)
{
    struct cuda_apply_part part = {.w = arguments->w, .g = arguments->g, .n = arguments->n};
    for (int i = 0; i < CUDA_APPLY_SLOTS; i++)
        part.slots[i] = arguments->slots[i];
    return part;
}

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
    state->launch = cuda_apply(setup->node->op->def->name);
    return apply_find_inputs(setup, &state->form);
}

static int run(struct kernel_call *call)
{
    const struct cuda_apply_state *state = call->state;
    struct apply_arguments arguments;
    if (apply_collect(call, &state->form, &arguments))
        return call->err->code;
    struct cuda_apply_part part = apply_part(&arguments);
    int code = part.n ? launch(call, &arguments, &part, 1) : KERNEL_DONE;
    return code > 0 ? code : apply_finish(call, code);
}

const struct kernel_code kernel_cuda_apply = {.prepare = prepare, .run = run};

static int prepare_batch(struct kernel_setup *setup)
{
    struct cuda_apply_state *state = setup->state = mem_alloc(sizeof *state);
    state->batch = apply_batch_of(setup->node);
    state->launch = cuda_apply(state->batch.rule);
    return 0;
}

static int launch_batch(struct kernel_call *call, const struct apply_batch *batch, int first, int n)
{
    struct apply_arguments arguments[APPLY_BATCH_MAX];
    struct cuda_apply_part parts[APPLY_BATCH_MAX];
    int64_t all = 0;
    apply_batch_collect(call, batch, first, n, arguments);
    for (int i = 0; i < n; i++) {
        parts[i] = apply_part(&arguments[i]);
        all += arguments[i].n;
    }
    return all ? launch(call, arguments, parts, n) : KERNEL_DONE;
}

static int run_fused(struct kernel_call *call)
{
    const struct apply_batch *batch = &((const struct cuda_apply_state *)call->state)->batch;
    int n = batch->n, result = KERNEL_DONE;
    if (apply_batch_open(call, batch))
        return call->err->code;
    for (int first = 0; first < n && result <= 0; first += APPLY_BATCH_MAX) {
        int code = launch_batch(call, batch, first,
                                n - first < APPLY_BATCH_MAX ? n - first : APPLY_BATCH_MAX);
        result = code == KERNEL_DONE ? result : code;
    }
    return result > 0 ? result : apply_batch_finish(call, result);
}

const struct kernel_code kernel_cuda_fused_apply = {.prepare = prepare_batch, .run = run_fused};
