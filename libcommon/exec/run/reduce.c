/* SPDX-License-Identifier: Apache-2.0
 *
 * AllReduce of values that are in the memory of a device: they go to the step's collective in host
 * memory. Where it adds on their device they go there where they are, and nothing waits but the
 * device's queue.
 */
#include "base/memory.h"
#include "exec/device/deferred.h"
#include "exec/device/queue.h"
#include "exec/run/builtin.h"
#include "exec/step/collective_kernel.h"

/* ---- what comes back ---- */

static int take_here(struct kernel_call *call, const struct collective_results *results)
{
    int code = item_join(call, &results->at);
    for (int i = 0; !code && i < call->n_out; i++)
        if (!kernel_share_output(call, i, &results->values[i]))
            code = call->err->code;
    return code;
}

static int take_from_host(struct kernel_call *call, const struct collective_results *results)
{
    const struct call_host *host = call_host(call);
    int code = 0;
    for (int i = 0; !code && i < call->n_out; i++)
        code = item_copy_in(call, i, &results->values[i]);
    device_step_await_copies(host->on_device);
    return code;
}

static int take_reduced(struct kernel_call *call, const struct collective_results *results)
{
    thread_enter_device(call->device, 1);
    return results->at.device ? take_here(call, results) : take_from_host(call, results);
}

/* ---- what goes there ---- */

static int bring_here(struct kernel_call *call)
{
    const struct call_host *host = call_host(call);
    const struct collective_reduction *reduction = call->state;
    struct tensor *values = mem_array((size_t)call->n_in + 1, sizeof *values);
    struct collective_call what = {.kinds = reduction->kinds,
                                   .n = call->n_in,
                                   .pool = host->pool,
                                   .host_pool = host->plan->host_pool};
    int code = item_hand_over(call, values, &what.at);
    if (!code) {
        code = collective_ask(call, values, what, take_reduced);
    } else {
        for (int i = 0; i < call->n_in; i++)
            tensor_release(&values[i]);
        device_point_release(&what.at);
    }
    mem_free(values);
    return code;
}

static int bring_copies(struct kernel_call *call, struct tensor *values)
{
    const struct collective_reduction *reduction = call->state;
    const struct collective_call what = {.kinds = reduction->kinds, .n = call->n_in};
    return collective_ask(call, values, what, take_reduced);
}

int reduce_run(struct kernel_call *call)
{
    const struct collective *collective = call->step->collective;
    const struct collective_reduction *reduction = call->state;
    bool stays =
        !collective || (reduction->options.by_device && collective->adds_on == call->device);
    return stays ? bring_here(call) : item_copy_out(call, bring_copies);
}
