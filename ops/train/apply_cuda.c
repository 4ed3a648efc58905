/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels of all updates: a launch for each variable, or for as many as it has room for.
 */
#include "ops/train/apply_cuda.h"

#include "ops/device/kernel_cuda.h"
#include "ops/train/apply.h"

_Static_assert(CUDA_APPLY_SLOTS == APPLY_SLOTS_MAX, "slots of a rule");
_Static_assert(CUDA_APPLY_SCALARS == APPLY_SCALARS_MAX, "scalars of a rule");

static struct cuda_apply_part part_of(const struct apply_arguments *arguments)
{
    struct cuda_apply_part part = {.w = arguments->w, .g = arguments->g, .n = arguments->n};
    for (int i = 0; i < CUDA_APPLY_SLOTS; i++)
        part.slots[i] = arguments->slots[i];
    return part;
}

/* All of one rule and its scalars, which are those of the first. */
static int launch(struct kernel_call *call, const char *op, const struct apply_arguments *first,
                  const struct cuda_apply_part *parts, int n_parts)
{
    struct cuda_apply launch = {.op = op,
                                .type = cuda_type_of(call->in[0]->type),
                                .nesterov = first->nesterov,
                                .n_parts = n_parts,
                                .parts = parts,
                                .fault = cuda_step_fault(call)};
    for (int i = 0; i < CUDA_APPLY_SCALARS; i++)
        launch.scalars[i] = first->scalars[i];
    return cuda_launched(call, cuda_apply(&launch, cuda_compute(call)));
}

static int run(struct kernel_call *call)
{
    struct apply_arguments arguments;
    if (apply_collect(call, &arguments))
        return call->err->code;
    struct cuda_apply_part part = part_of(&arguments);
    int code = part.n ? launch(call, call->node->op->def->name, &arguments, &part, 1) : KERNEL_DONE;
    return code > 0 ? code : apply_finish(call, code);
}

const struct kernel_code kernel_cuda_apply = {.prepare = apply_check_arguments, .run = run};

static int launch_batch(struct kernel_call *call, int first, int n)
{
    struct apply_arguments arguments[APPLY_BATCH];
    struct cuda_apply_part parts[APPLY_BATCH];
    int64_t all = 0;
    apply_fused_collect(call, first, n, arguments);
    for (int i = 0; i < n; i++) {
        parts[i] = part_of(&arguments[i]);
        all += arguments[i].n;
    }
    return all ? launch(call, apply_fused_rule(call->node), arguments, parts, n) : KERNEL_DONE;
}

static int run_fused(struct kernel_call *call)
{
    int n = (int)node_int(call->node, "N"), result = KERNEL_DONE;
    if (apply_fused_open(call))
        return call->err->code;
    for (int first = 0; first < n && result <= 0; first += APPLY_BATCH) {
        int code = launch_batch(call, first, n - first < APPLY_BATCH ? n - first : APPLY_BATCH);
        result = code == KERNEL_DONE ? result : code;
    }
    return result > 0 ? result : apply_fused_finish(call, result);
}

const struct kernel_code kernel_cuda_fused_apply = {.run = run_fused};
