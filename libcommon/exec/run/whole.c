/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a whole plan: its one region, by a thread that waits for it without queue or counters.
 */
#include "exec/run/dynamic.h"

/* Gives back what was taken and not yet given. */
void whole_abandon(const struct run *run, const struct activation *a)
{
    const struct plan *plan = run->plan;
    variable_lock_vec held = VEC_INIT;
    for (int at = 0; at <= a->at; at++) {
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

void whole_run(struct run *run)
{
    struct activation *a = run->root->oldest->activations;
    run->own.activation = a;
    a->at = a->n_locked = 0;
    if (!run->plan->n_order || !whole_leave(run, a, region_run(run, &run->own, NULL)))
        return;
    run->failed = true;
    run->err = run->own.err;
    run->own.err.code = 0;
}
