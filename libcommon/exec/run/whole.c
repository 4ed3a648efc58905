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

static int goes_on(struct kernel_call *call, struct run *condition, const struct while_call *turn,
                   bool *yes)
{
    struct tensor value;
    int code = run_once(condition, turn, &value, call->err);
    if (code)
        return code;
    if (tensor_count(&value) == 1)
        *yes = *(const bool *)value.data;
    else
        code = kernel_fail(call, "the condition of loop '%s' is %s, not a scalar",
                           turn->loop->frame, shape_text(&value.shape));
    tensor_release(&value);
    return code;
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

/* What goes into the next iteration is handed on, not copied: `values` are of the loop's inputs,
 * counted where they have buffers, the first of them its variables. */
int while_run(struct kernel_call *call)
{
    const struct while_loop *loop = call->state;
    size_t n = (size_t)(loop->n_inputs + loop->n_variables) + 1;
    struct tensor *values = mem_array(n, sizeof *values), *next = values + loop->n_inputs;
    struct while_call turn = {.loop = loop, .values = values, .step = call->step};
    struct run *condition = run_take(loop->condition, call->err);
    struct run *body = condition ? run_take(loop->body, call->err) : NULL;
    int code = body ? 0 : call->err->code;
    bool yes = true;
    for (int i = 0; i < loop->n_inputs; i++) {
        struct tensor in = *call->in[i];
        in.buffer = holder_of(call, i);
        if (in.buffer)
            tensor_share(&values[i], &in);
        else
            values[i] = in;
    }
    for (int64_t number = 0; !code && yes; number++) {
        turn.iteration = while_iteration(call->iteration, loop->key, number);
        code = goes_on(call, condition, &turn, &yes);
        if (code || !yes || (code = run_once(body, &turn, next, call->err)))
            break;
        for (int i = 0; i < loop->n_variables; i++) {
            tensor_release(&values[i]);
            values[i] = next[i];
        }
        code = step_stopped(call->step, call->err);
    }
    for (int i = 0; i < loop->n_variables && !code; i++)
        if (loop->outputs[i] >= 0)
            code = give(call, loop->outputs[i], &values[i]);
    for (int i = 0; i < loop->n_inputs; i++)
        tensor_release(&values[i]);
    if (condition)
        run_give(condition);
    if (body)
        run_give(body);
    mem_free(values);
    return code;
}
