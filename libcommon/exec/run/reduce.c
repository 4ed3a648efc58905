/* SPDX-License-Identifier: Apache-2.0
 *
 * AllReduce of values that are in the memory of a device: they go to the step's collective in host
 * memory. Where it adds on their device they go there where they are, and nothing waits but the
 * device's queue.
 */
#include "base/container_of.h"
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

static int take(struct kernel_call *call, const struct collective_results *results)
{
    thread_enter_device(call->device, 1);
    return results->at.device ? take_here(call, results) : take_from_host(call, results);
}

/* ---- what goes there ---- */

struct bringing {
    struct copy_out copy;
    struct kernel_call *call;
    struct tensor *values; /* 2 n: the inputs, and their copies */
};

static void bringing_free(struct bringing *b)
{
    copy_out_release(&b->copy);
    mem_free(b->values);
    mem_free(b);
}

static int bring_here(struct bringing *b)
{
    struct kernel_call *call = b->call;
    const struct call_host *host = call_host(call);
    const struct collective_reduction *reduction = call->state;
    struct collective_call what = {.kinds = reduction->kinds,
                                   .n = call->n_in,
                                   .at = b->copy.at,
                                   .pool = host->pool,
                                   .host_pool = host->host_pool};
    b->copy.at = (struct device_point){0};
    int code = collective_ask(call, b->copy.from, what, take);
    bringing_free(b);
    return code;
}

static void copied(struct copy_out *copy, const struct error *failure)
{
    struct bringing *b = CONTAINER_OF(copy, struct bringing, copy);
    struct kernel_call *call = b->call;
    if (failure)
        *call->err = *failure;
    const struct collective_reduction *reduction = call->state;
    const struct collective_call what = {.kinds = reduction->kinds, .n = call->n_in};
    int code = failure ? failure->code : collective_ask(call, copy->to, what, take);
    bringing_free(b);
    if (code != KERNEL_PENDING)
        kernel_done(call, code);
}

static int bring_to_host(struct bringing *b)
{
    if (!item_copy_out(b->call, &b->copy))
        return KERNEL_PENDING;
    int code = b->call->err->code;
    bringing_free(b);
    return code;
}

static bool stays(const struct kernel_call *call, const struct collective *collective)
{
    const struct collective_reduction *reduction = call->state;
    return !collective || (reduction->options.by_device && collective->adds_on == call->device);
}

int reduce_run(struct kernel_call *call)
{
    const struct collective *collective = call->step->collective;
    size_t n = (size_t)call->n_in;
    struct bringing *b = mem_alloc(sizeof *b);
    b->call = call;
    b->values = mem_array(2 * n + 1, sizeof *b->values);
    b->copy =
        (struct copy_out){.from = b->values, .to = b->values + n, .n = call->n_in, .done = copied};
    if (item_hand_over(call, b->copy.from, &b->copy.at)) {
        bringing_free(b);
        return call->err->code;
    }
    return stays(call, collective) ? bring_here(b) : bring_to_host(b);
}
