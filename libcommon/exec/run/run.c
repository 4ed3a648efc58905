/* SPDX-License-Identifier: Apache-2.0
 *
 * What is to be known of an item before it runs, and to be done when it has, whichever executor
 * runs it.
 */
#include "base/str.h"
#include "base/time.h"
#include "exec/device/queue.h"
#include "exec/plan/plan_internal.h"
#include "exec/step/trace.h"

#define CHEAP_BYTES 4096        /* a few microseconds, whatever is computed of so little */
#define CHEAP_FETCH_BYTES 65536 /* copied in as many */

/* -1: unknown, or not numbers. */
static int64_t value_bytes(const struct plan *plan, int v)
{
    if (v < 0)
        return 0;
    const struct value *value = &plan->values.items[v];
    return value->type == STRING ? -1 : shape_bytes(&value->shape, value->type);
}

/* What a file or a queue takes cannot be told from sizes. */
static bool is_of_outside(const struct item *item)
{
    return !item->refs && node_has(item->node, OP_STATEFUL);
}

/* Of what leaves the process, all that is not computed there is copied to where it is sent from. */
static bool copies_to_send(const struct plan *plan, const struct item *item)
{
    bool leaves = false, computed = true;
    for (int i = 0; i < item->n_in; i++) {
        const struct value *value = item->in[i] < 0 ? NULL : &plan->values.items[item->in[i]];
        leaves |= value && value->is_outgoing;
        computed &= !value || value->kind == VALUE_COMPUTED;
    }
    for (int i = 0; i < item->n_out; i++)
        leaves |= plan->values.items[item->out[i]].is_outgoing &&
                  plan->values.items[item->out[i]].alias_input >= 0;
    return leaves && !computed && plan->options.outgoing;
}

bool item_is_cheap(const struct plan *plan, const struct item *item)
{
    int64_t bytes = 0, limit = CHEAP_BYTES;
    if (item->code == &plan_fetch_code || copies_to_send(plan, item))
        limit = CHEAP_FETCH_BYTES;
    else if (!item->code || item->flags & KERNEL_CHEAP)
        return true;
    else if (!item->node || is_of_outside(item) || plan->options.spread)
        return false;
    for (int i = 0; i < item->n_in + item->n_out && bytes <= limit; i++) {
        int64_t more = value_bytes(plan, i < item->n_in ? item->in[i] : item->out[i - item->n_in]);
        if (more < 0)
            return false;
        bytes += more;
    }
    return bytes <= limit;
}

int item_fail(const struct item *item, struct error *err)
{
    if (!item->node)
        return err->code;
    return node_fail(item->node, err);
}

static void tell_trace(const struct item *item, const struct step *step, int64_t start)
{
    if (!step->trace)
        return;
    trace_kernel(step->trace, step->number,
                 &(struct trace_run){.node = item->name,
                                     .kernel = item->kernel,
                                     .op = item->node ? item->node->op->def->name : item->kernel,
                                     .start = start,
                                     .end = time_now_ns()});
}

int item_make_ready(const struct plan *plan, const struct item *item, struct error *err)
{
    if (item->uses_copies)
        queue_follow(plan->options.device, QUEUE_COMPUTE, QUEUE_IN);
    for (int i = 0; i < item->n_checked; i++) {
        if (item->checked[i]->initialized)
            continue;
        error_set(err, ERR_DATA, "variable '%s' is not initialized", item->checked[i]->name);
        return item_fail(item, err);
    }
    return 0;
}

static int fail_not_finite(const struct item *item, int output, const struct tensor *t, int64_t bad,
                           struct error *err)
{
    struct str what = STR_INIT;
    tensor_print_not_finite(&what, t, bad);
    if (item->n_out > 1)
        error_set(err, ERR_DATA, "output %d is %s", output, str_text(&what));
    else
        error_set(err, ERR_DATA, "result is %s", str_text(&what));
    str_release(&what);
    err->reason = ERROR_NOT_FINITE;
    return item_fail(item, err);
}

/* What an output is, on the host; *copy is to be released. */
static int look_at(const struct plan *plan, const struct item *item, int output,
                   const struct tensor **t, struct tensor *copy, struct error *err)
{
    const struct tensor *there = *t;
    if (!plan->values.items[item->out[output]].on_device)
        return 0;
    if (tensor_alloc(copy, there->type, &there->shape, err))
        return err->code;
    *t = copy;
    struct device *device = plan->options.device;
    return device_read(device, copy->data, there->data, tensor_bytes(copy), err);
}

static int check_numerics(const struct plan *plan, const struct item *item,
                          const struct kernel_call *call)
{
    struct error *err = call->err;
    for (int i = 0; item->node && i < item->n_out; i++) {
        const struct tensor *t = call->out[i];
        struct tensor copy = TENSOR_INIT;
        if (item->node->outputs[i].is_ref && call->refs)
            for (int k = 0; k < item->n_in; k++)
                if (call->refs[k])
                    t = &call->refs[k]->value;
        if (!t || !t->data || t->layout || !dtype_is_floating(t->type))
            continue;
        int code = look_at(plan, item, i, &t, &copy, err);
        int64_t bad = code ? -1 : tensor_find_not_finite(t);
        if (bad >= 0)
            code = fail_not_finite(item, i, t, bad, err);
        tensor_release(&copy);
        if (code)
            return code;
    }
    return 0;
}

int item_over(const struct plan *plan, const struct item *item, const struct kernel_call *call,
              int64_t start, int result)
{
    if (item->code == &plan_while_code) /* what it repeats speaks for itself */
        return result;
    tell_trace(item, call->step, start);
    if (result > 0)
        return item_fail(item, call->err);
    return plan->options.check_numerics ? check_numerics(plan, item, call) : 0;
}
