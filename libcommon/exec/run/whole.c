/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a whole plan: its one region, by the thread that asks, without queue or counters; or, on
 * a device that has captured it, by launching that.
 */
#include <string.h>

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
    for (int later = position + 1; later < plan->n_order; later++) {
        const struct item *item = &plan->items.items[plan->order[later]];
        for (size_t g = 0; g < item->give.n; g++) {
            const struct variable_lock *lock = &item->give.items[g];
            bool taken_later = false;
            for (int at = position + 1; at <= later && !taken_later; at++) {
                const struct item *taker = &plan->items.items[plan->order[at]];
                for (size_t t = 0; t < taker->take.n; t++)
                    taken_later = taken_later || (taker->take.items[t].variable == lock->variable &&
                                                  taker->take.items[t].write == lock->write);
            }
            if (!taken_later)
                variable_unlock(lock->variable, lock->write);
        }
    }
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

/* ---- what a loop repeats ---- */

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

int whole_repeat(struct run *run, const struct while_call *call, struct tensor *fetches,
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
