/* SPDX-License-Identifier: Apache-2.0
 *
 * AllReduce of values in host memory. The executor reduces values on a device with memory of its
 * own (exec/run/builtin.c).
 */
#include "base/memory.h"
#include "ops/aggregate/collective_share.h"

int collective_share(struct kernel_call *call, const struct collective_results *results)
{
    const struct device *device = results->at.device;
    if (device)
        return error_set(call->err, ERR_INTERNAL, "was given what is in the memory of %s:%d",
                         device->type, device->index);
    for (int i = 0; i < call->n_out; i++) {
        if (!kernel_share_output(call, i, &results->values[i]))
            return call->err->code;
        tensor_release(&results->values[i]);
    }
    return 0;
}

static int run(struct kernel_call *call)
{
    const struct collective_reduction *reduction = call->state;
    int n = call->n_in;
    struct tensor *values = mem_array((size_t)n + 1, sizeof *values);
    int code = 0;
    for (int i = 0; !code && i < call->n_in; i++)
        code = kernel_take_input(call, i, &values[i]);
    if (!code)
        code = collective_ask(call, values,
                              (struct collective_call){.kinds = reduction->kinds, .n = n},
                              collective_share);
    else
        for (int i = 0; i < n; i++)
            tensor_release(&values[i]);
    mem_free(values);
    return code;
}

const struct kernel_code kernel_all_reduce = {.prepare = collective_prepare, .run = run};
