/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a whole plan: its one region, by the thread that asks, without queue or counters; or, on
 * a device that has captured it, by launching that.
 */
#include <string.h>

#include "base/memory.h"
#include "exec/run/builtin.h"
#include "exec/run/dynamic.h"

#define ALL_ITEMS (-1) /* in place of a position: they are launched */

static struct activation *region_of(struct run *run)
{
    return run->root->oldest->activations;
}

void whole_open(struct run *run)
{
    struct activation *a = region_of(run);
    run->captured.is_current = false;
    run->own.activation = a;
    a->at = captured_may_run(run) ? ALL_ITEMS : 0;
    a->n_locked = 0;
}

/* After a failure at `position`: gives back what was taken and not yet given. */
static void abandon_locks(const struct plan *plan, int position)
{
    variable_lock_vec held = VEC_INIT;
    for (int at = 0; at <= position; at++) {
        const struct dynamic_item *di = &plan->dynamic->items[plan->order[at]];
        for (size_t i = 0; i < di->locks.n; i++)
            vec_push(&held, di->locks.items[i]);
        for (size_t i = 0, k; i < di->gives.n; i++) {
            for (k = 0; held.items[k].variable != di->gives.items[i].variable;)
                k++;
            held.items[k] = vec_pop(&held);
        }
    }
    for (size_t i = 0; i < held.n; i++)
        variable_unlock(held.items[i].variable, held.items[i].write);
    vec_release(&held);
}

static int run_items(struct run *run)
{
    int code = region_run(run, &run->own, NULL);
    if (code > 0)
        abandon_locks(run->plan, region_of(run)->at);
    return code;
}

static int run_captured(struct run *run)
{
    struct activation *a = region_of(run);
    const struct dynamic_item *all = &run->plan->dynamic->all;
    if (!kernel_take_locks(a, all))
        return KERNEL_PENDING;
    bool is_captured = captured_prepare(run);
    int code = is_captured ? captured_launch(run, &run->own.err) : 0;
    kernel_give_locks(a, all);
    if (is_captured)
        return code ? code : step_stopped(run->step, &run->own.err);
    a->at = 0;
    return run_items(run);
}

int whole_run(struct run *run)
{
    int code = region_of(run)->at == ALL_ITEMS ? run_captured(run) : run_items(run);
    if (code > 0) {
        run->failed = true;
        run->err = run->own.err;
        run->own.err.code = 0;
    }
    return code;
}

void whole_clear(struct run *run)
{
    const struct plan *plan = run->plan;
    for (size_t i = 0; i < plan->counted.n; i++) {
        struct tensor *t = iteration_output(plan, run->root->oldest, plan->counted.items[i]);
        struct tensor counted = *t;
        t->buffer = NULL;
        tensor_release(&counted);
    }
}

/* ---- a loop that is one item: condition and body in turns, on the thread that runs it ---- */

/* What is repeated, once. */
struct while_call {
    const struct while_loop *loop;
    const struct tensor *values; /* of its inputs, counted where they have buffers */
    uint64_t iteration;
    struct step *step;
};

static const struct tensor *given(const struct while_call *call, int feed)
{
    static int32_t index;
    static bool yes = true;
    static const struct tensor indices = {.type = INT32, .data = &index};
    static const struct tensor truth = {.type = BOOL, .data = &yes};
    int from = call->loop->given[feed];
    return from == WHILE_GIVEN_INDEX  ? &indices
           : from == WHILE_GIVEN_TRUE ? &truth
                                      : &call->values[from];
}

static int bind_given(struct run *run, const struct while_call *call, struct error *err)
{
    const struct plan *plan = run->plan;
    for (int i = 0; i < plan->n_feeds; i++) {
        const struct plan_feed *wanted = &plan->feeds[i];
        const struct tensor *from = given(call, i);
        if (plan->feed_nodes[i] < 0)
            continue;
        if (from->type != wanted->type || !shape_equal(&from->shape, &wanted->shape))
            return error_set(err, ERR_INTERNAL, "a feed is %s, but the plan is for %s",
                             shape_text_typed(from->type, &from->shape),
                             shape_text_typed(wanted->type, &wanted->shape));
        run->feeds[i] = *from;
    }
    return 0;
}

static int run_once(struct run *run, const struct while_call *call, struct tensor *fetches,
                    struct error *err)
{
    struct plan *plan = run->plan;
    memset(fetches, 0, (size_t)plan->n_fetches * sizeof *fetches);
    run->step = call->step;
    run->fetches = fetches;
    run->root->oldest->tag = call->iteration;
    if (bind_given(run, call, err))
        return err->code;
    whole_open(run);
    int code = run_items(run);
    if (code) {
        *err = run->own.err;
        run->own.err.code = 0;
        for (int i = 0; i < plan->n_fetches; i++)
            tensor_release(&fetches[i]);
    }
    whole_clear(run);
    return code;
}

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

static void take_inputs(struct repetition *r)
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
    if (run_once(r->condition, call, &condition, r->call->err))
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
    if (run_once(r->body, call, r->next, r->call->err))
        return r->call->err->code;
    for (int i = 0; i < r->loop->n_variables; i++) {
        tensor_release(&r->values[i]);
        r->values[i] = r->next[i];
    }
    return step_stopped(call->step, r->call->err);
}

static int repeat(struct repetition *r)
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

static void let_go(struct repetition *r)
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
    take_inputs(&r);
    int code = take(loop->condition, &r.condition, call->err);
    if (!code)
        code = take(loop->body, &r.body, call->err);
    if (!code)
        code = repeat(&r);
    for (int i = 0; i < loop->n_variables && !code; i++)
        if (loop->outputs[i] >= 0)
            code = give(call, loop->outputs[i], &r.values[i]);
    let_go(&r);
    return code;
}
