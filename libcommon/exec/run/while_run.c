/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a loop that is one item: condition and body in turns, on the thread that runs the item.
 */
#include <string.h>

#include "base/memory.h"
#include "exec/run/builtin.h"
#include "exec/run/dynamic.h"

struct repetition {
    struct kernel_call *call;
    const struct while_loop *loop;
    struct run *condition, *body;
    struct tensor *values; /* of the inputs, counted where they have buffers */
    struct tensor *next;   /* of the variables */
};

static int take(struct plan *plan, struct run **run, struct error *err)
{
    return (*run = run_take(plan, err)) ? 0 : err->code;
}

/* What holds the input's memory: a variable's, where the input is one seen otherwise, as well. */
static struct buffer *holder_of(const struct kernel_call *call, int i)
{
    const struct call_host *host = call_host(call);
    const struct plan *plan = host->plan;
    const struct value *root = &plan->values.items[plan_root_value(plan, host->item->in[i])];
    const struct tensor *in = call->in[i];
    bool is_variable = root->kind == VALUE_VARIABLE && root->variable->value.data == in->data;
    return is_variable && !in->buffer ? root->variable->value.buffer : in->buffer;
}

static void begin(struct repetition *r)
{
    for (int i = 0; i < r->loop->n_inputs; i++) {
        struct tensor in = *r->call->in[i];
        in.buffer = holder_of(r->call, i);
        if (in.buffer)
            tensor_share(&r->values[i], &in);
        else
            r->values[i] = in;
    }
}

static int goes_on(struct repetition *r, const struct while_call *call, bool *yes)
{
    struct tensor condition;
    if (whole_repeat(r->condition, call, &condition, r->call->err))
        return r->call->err->code;
    int code = 0;
    if (tensor_count(&condition) == 1)
        *yes = *(const bool *)condition.data;
    else
        code = kernel_fail(r->call, "the condition of loop '%s' is %s, not a scalar",
                           r->loop->frame, shape_text(&condition.shape));
    tensor_release(&condition);
    return code;
}

static int iterate(struct repetition *r, const struct while_call *call)
{
    if (whole_repeat(r->body, call, r->next, r->call->err))
        return r->call->err->code;
    for (int i = 0; i < r->loop->n_variables; i++) {
        tensor_release(&r->values[i]);
        r->values[i] = r->next[i];
    }
    return step_stopped(call->step, r->call->err);
}

static int run(struct repetition *r)
{
    struct while_call call = {.loop = r->loop, .values = r->values, .step = r->call->step};
    bool yes = true;
    for (int64_t number = 0; yes; number++) {
        call.iteration = while_iteration(r->call->iteration, r->loop->key, number);
        int code = goes_on(r, &call, &yes);
        if (!code && yes)
            code = iterate(r, &call);
        if (code)
            return code;
    }
    return 0;
}

/* What never changed may be somebody's memory. */
static int give(struct kernel_call *call, int output, const struct tensor *value)
{
    if (value->buffer)
        return kernel_share_output(call, output, value) ? 0 : call->err->code;
    struct tensor *out = kernel_alloc_output(call, output, &value->shape);
    if (!out)
        return call->err->code;
    memcpy(out->data, value->data, tensor_bytes(value));
    return 0;
}

static void end(struct repetition *r)
{
    for (int i = 0; i < r->loop->n_inputs; i++)
        tensor_release(&r->values[i]);
    if (r->condition)
        run_give(r->condition);
    if (r->body)
        run_give(r->body);
    mem_free(r->values);
}

int loop_run(struct kernel_call *call)
{
    const struct while_loop *loop = call->state;
    struct repetition r = {.call = call, .loop = loop};
    r.values = mem_array((size_t)(loop->n_inputs + loop->n_variables) + 1, sizeof *r.values);
    r.next = r.values + loop->n_inputs;
    begin(&r);
    int code = take(loop->condition, &r.condition, call->err);
    if (!code)
        code = take(loop->body, &r.body, call->err);
    if (!code)
        code = run(&r);
    for (int i = 0; i < loop->n_variables && !code; i++)
        if (loop->outputs[i] >= 0)
            code = give(call, loop->outputs[i], &r.values[i]);
    end(&r);
    return code;
}
