/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a whole plan: its one region, by the thread that asks, without queue or counters; or, on
 * a device that has captured it, by launching that.
 */
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
        const struct item *item = &plan->items.items[plan->order[at]];
        for (size_t i = 0; i < item->locks.n; i++)
            vec_push(&held, item->locks.items[i]);
        for (size_t i = 0, k; i < item->gives.n; i++) {
            for (k = 0; held.items[k].variable != item->gives.items[i].variable;)
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
    int code = run->plan->n_order ? region_run(run, &run->own, NULL) : 0;
    if (code > 0)
        abandon_locks(run->plan, region_of(run)->at);
    return code;
}

static int run_captured(struct run *run)
{
    struct activation *a = region_of(run);
    const variable_lock_vec *all = &run->plan->locks;
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
