/* SPDX-License-Identifier: Apache-2.0
 *
 * Work before and after a kernel runs, for both executors.
 */
#include "exec/run/item.h"
#include "base/str.h"
#include "base/time.h"
#include "exec/device/queue.h"
#include "exec/step/trace.h"

int kernel_fault(struct kernel_call *call, const struct fault *fault)
{
    const struct call_host *host = call_host(call);
    struct fault own = *fault;
    own.item = call->item;
    if (host->on_device && host->on_device->found)
        *host->on_device->found = own;
    const struct tensor *in = call->in[own.input];
    struct fault_origin origin = {call->node, in->type, &in->shape};
    return fault_explain(NULL, &own, &origin, call->err);
}

/* ---- traces ---- */

static struct trace_run describe(const struct item *item)
{
    return (struct trace_run){.node = item->name, .kernel = item->kernel, .op = item->op};
}

/* The planner's own copies record their work on the device themselves. */
static bool tells_itself(const struct call_host *host)
{
    return plan_is_copied(host->plan, host->item) || host->item->builtin == BUILTIN_COPY_OUT;
}

struct item_start item_start(const struct kernel_call *call)
{
    const struct call_host *host = call_host(call);
    struct item_start start = {.time = time_now_ns()};
    if (call->step_block && !tells_itself(host))
        start.timing = device_timer_begin(call->device, QUEUE_COMPUTE);
    return start;
}

struct device_timer *item_start_copy(const struct kernel_call *call, enum queue_kind queue)
{
    bool is_traced = call->step->trace && call->step_block;
    return is_traced ? device_timer_begin(call->device, queue) : NULL;
}

void item_copied(const struct kernel_call *call, struct device_timer *timing)
{
    const struct call_host *host = call_host(call);
    struct trace_run run = describe(host->item);
    if (timing)
        device_timer_end(timing, host->on_device, &run);
}

/* ---- the end ---- */

int item_begin(const struct kernel_call *call)
{
    const struct call_host *host = call_host(call);
    if (host->item->uses_copies)
        device_step_await_copies(host->on_device);
    vec_each(use, &host->item->uses) {
        if (use->may_lack || use->variable->initialized)
            continue;
        error_set(call->err, ERR_DATA, "variable '%s' is not initialized", use->variable->name);
        return item_fail(&host->plan->items.items[use->item], call->err);
    }
    return 0;
}

/* Checks outputs, on the host. */
static int check_numerics(const struct kernel_call *call)
{
    const struct plan *plan = call_host(call)->plan;
    const struct item *item = call_host(call)->item;
    struct error *err = call->err;
    error_clear(err);
    for (int i = 0; item->node && i < item->n_out && !err->code; i++) {
        const struct tensor *t = call->out[i];
        struct tensor copy = TENSOR_INIT;
        if (item->node->outputs[i].is_ref && call->refs)
            for (int k = 0; k < item->n_in; k++)
                if (call->refs[k])
                    t = &call->refs[k]->value;
        if (!t || !t->data || t->layout || !dtype_is_floating(t->type))
            continue;
        if (plan->values.items[item->out[i]].on_device &&
            !tensor_alloc(&copy, t->type, &t->shape, err) &&
            !device_read(plan->options.device, copy.data, t->data, tensor_bytes(t), err))
            t = &copy;
        int64_t bad = err->code ? -1 : tensor_find_not_finite(t);
        if (bad >= 0) {
            struct str what = STR_INIT;
            if (item->n_out > 1)
                str_printf(&what, "output %d is ", i);
            else
                str_append(&what, "result is ");
            tensor_print_not_finite(&what, t, bad);
            error_set(err, ERR_DATA, "%s", str_text(&what));
            str_release(&what);
            err->reason = ERROR_NOT_FINITE;
            item_fail(item, err);
        }
        tensor_release(&copy);
    }
    return err->code;
}

/* The compute queue copies the flag: other threads may enqueue kernels that set it. */
static bool read_fault(const struct kernel_call *call, struct fault *fault)
{
    struct device *device = call->device;
    struct error ignored = ERROR_INIT;
    struct buffer *copy = device_alloc(device, sizeof *fault);
    if (!copy)
        return false;
    int code = device->memory->copy(device, QUEUE_COMPUTE, copy->data, &call->step_block->fault,
                                    sizeof *fault, &ignored);
    if (!code)
        code = device_read(device, fault, copy->data, sizeof *fault, &ignored);
    copy->free(copy);
    return !code && fault->code != FAULT_NONE;
}

/* The inputs may be garbage from a kernel that failed before, so that kernel's error comes first.
 * An item that passes values on may have reported it already, naming another node. An asynchronous
 * kernel ends on another's thread, which must not wait for the device. */
static int fail(const struct kernel_call *call)
{
    const struct item *item = call_host(call)->item;
    struct fault fault = {.code = FAULT_NONE};
    if (call->step_block && !(item->flags & KERNEL_ASYNC) && read_fault(call, &fault))
        return fault_report(&fault, call->err);
    enum op_round round = item->node ? node_round(item->node) : ROUND_NONE;
    bool names_other =
        item->builtin == BUILTIN_HAND_OVER || round == ROUND_REDUCE || round == ROUND_ROUTE;
    return names_other && call->err->node.n ? call->err->code : item_fail(item, call->err);
}

int item_over(const struct kernel_call *call, struct item_start start, int result)
{
    const struct call_host *host = call_host(call);
    const struct item *item = host->item;
    if (item->builtin == BUILTIN_LOOP || item->builtin == BUILTIN_CONSTANT)
        return result; /* the items that it repeats are traced */
    if (call->step->trace) {
        struct trace_run run = describe(item);
        run.start = start.time;
        run.end = time_now_ns();
        bool is_timed = start.timing && result == KERNEL_ENQUEUED;
        if (is_timed)
            device_timer_end(start.timing, host->on_device, &run);
        else
            device_timer_drop(start.timing);
        if (!is_timed && (!call->step_block || !tells_itself(host)))
            trace_kernel(call->step->trace, call->step->number, &run);
    }
    if (result > 0)
        return fail(call);
    return host->plan->options.check_numerics ? check_numerics(call) : 0;
}

int item_fail_dead(struct error *err)
{
    return error_set(err, ERR_DATA,
                     "a fetched value is dead: it is in a branch that was not taken");
}
