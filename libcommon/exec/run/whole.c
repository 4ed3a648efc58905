/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a whole plan: its one region, by the thread that asks, without queue or counters.
 */
#include "exec/run/dynamic.h"

static struct activation *region_of(struct run *run)
{
    return run->root->oldest->activations;
}

void whole_open(struct run *run)
{
    struct activation *a = region_of(run);
    run->own.activation = a;
    a->at = a->n_locked = 0;
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

int whole_run(struct run *run)
{
    int code = run->plan->n_order ? region_run(run, &run->own, NULL) : 0;
    if (code > 0) {
        abandon_locks(run->plan, region_of(run)->at);
        run->failed = true;
        run->err = run->own.err;
        run->own.err.code = 0;
    }
    return code;
}
