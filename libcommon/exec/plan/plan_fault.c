/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <string.h>

#include "exec/plan/plan_internal.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static VEC(const struct plan *) plans;                   /* by their first item */

static uint32_t end_of(const struct plan *plan)
{
    return plan->first_item + (uint32_t)plan->items.n;
}

/* Into the first gap that is wide enough. */
void plan_number_items(struct plan *plan)
{
    if (plan->options.device->is_host)
        return;
    size_t at = 0;
    pthread_mutex_lock(&lock);
    while (at < plans.n && plans.items[at]->first_item - plan->first_item < plan->items.n)
        plan->first_item = end_of(plans.items[at++]);
    vec_push(&plans, plan);
    memmove(plans.items + at + 1, plans.items + at, (plans.n - 1 - at) * sizeof *plans.items);
    plans.items[at] = plan;
    pthread_mutex_unlock(&lock);
}

void plan_forget_items(struct plan *plan)
{
    if (plan->options.device->is_host)
        return;
    pthread_mutex_lock(&lock);
    for (size_t at = 0; at < plans.n; at++) {
        if (plans.items[at] != plan)
            continue;
        plans.n--;
        memmove(plans.items + at, plans.items + at + 1, (plans.n - at) * sizeof *plans.items);
    }
    if (!plans.n)
        vec_release(&plans);
    pthread_mutex_unlock(&lock);
}

const struct plan *plan_of_item(uint32_t item)
{
    const struct plan *found = NULL;
    pthread_mutex_lock(&lock);
    for (size_t at = 0; at < plans.n && !found; at++)
        if (item >= plans.items[at]->first_item && item < end_of(plans.items[at]))
            found = plans.items[at];
    pthread_mutex_unlock(&lock);
    return found;
}
