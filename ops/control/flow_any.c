/* SPDX-License-Identifier: Apache-2.0
 *
 * The data part of control flow: which input becomes which output. The executor handles frames and
 * deadness.
 */
#include "exec/device/kernel.h"

static int switch_prepare(struct kernel_setup *setup)
{
    setup->out[0].forward = setup->out[1].forward = FORWARD_ALIAS;
    return 0;
}

static int switch_run(struct kernel_call *call)
{
    const struct tensor *pred = call->in[1];
    if (tensor_count(pred) != 1)
        return kernel_fail(call, "pred must be a scalar, not %s", shape_text(&pred->shape));
    int chosen = *(const bool *)pred->data ? 1 : 0;
    return kernel_alias_output(call, chosen, 0, NULL) ? KERNEL_DONE : call->err->code;
}

const struct kernel_code kernel_switch = {.prepare = switch_prepare, .run = switch_run};

/* The executor passes one live input; the others are NULL. */
static int merge_run(struct kernel_call *call)
{
    int chosen = 0;
    while (chosen < call->n_in && !call->in[chosen])
        chosen++;
    if (chosen == call->n_in)
        return error_set(call->err, ERR_INTERNAL, "a merge without a live input");
    struct tensor *index = kernel_alloc_output(call, 1, &SHAPE_SCALAR);
    if (!index || !kernel_alias_output(call, 0, chosen, NULL))
        return call->err->code;
    *(int32_t *)index->data = chosen;
    return KERNEL_DONE;
}

const struct kernel_code kernel_merge = {.run = merge_run};
