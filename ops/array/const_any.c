/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner places constants and fed values; these kernels run only where it did not.
 */
#include "base/memory.h"
#include "exec/device/queue.h"

struct constant {
    const struct tensor *value;
};

static int const_prepare(struct kernel_setup *setup)
{
    struct constant *constant = setup->state = mem_alloc(sizeof *constant);
    constant->value = node_attr(setup->node, "value")->tensor;
    return 0;
}

static int const_run(struct kernel_call *call)
{
    const struct tensor *value = ((const struct constant *)call->state)->value;
    if (value->type == STRING)
        return kernel_fail(call, "a string constant cannot be copied here");
    struct tensor *out = kernel_alloc_output(call, 0, &value->shape);
    if (!out)
        return call->err->code;
    size_t bytes = tensor_bytes(value);
    return device_write(call->device, out->data, value->data, bytes, call->err);
}

const struct kernel_code kernel_const = {.prepare = const_prepare, .run = const_run};

static int placeholder_run(struct kernel_call *call)
{
    return error_set(call->err, ERR_NOINPUT, "needs a value: feed it");
}

const struct kernel_code kernel_placeholder = {.run = placeholder_run};
