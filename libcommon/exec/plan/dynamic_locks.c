/* SPDX-License-Identifier: Apache-2.0
 *
 * Which variables the items of a dynamic plan lock, or all of its step.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "exec/plan/region_private.h"

static int by_id(const void *a, const void *b)
{
    const struct variable_lock *x = a, *y = b;
    return x->variable->id < y->variable->id ? -1 : x->variable->id > y->variable->id;
}

static void add_lock(struct dynamic_item *di, struct variable *variable, bool write)
{
    for (int i = 0; i < di->n_locks; i++) {
        if (di->locks[i].variable == variable) {
            di->locks[i].write = di->locks[i].write || write;
            return;
        }
    }
    di->locks[di->n_locks++] = (struct variable_lock){variable, write};
}

static bool writes(const struct item *item, int input)
{
    return item->refs && item->refs[input] && !node_has(item->node, OP_READS_REF);
}

/* What an item locks while it runs. */
static void collect_locks(struct dynamic *d, struct plan *plan, int id)
{
    const struct item *item = &plan->items.items[id];
    struct dynamic_item *di = &d->items[id];
    for (int k = 0; k < item->n_in; k++) {
        const struct value *value = &plan->values.items[item->in[k]];
        if (value->kind != VALUE_VARIABLE)
            continue;
        if (!di->locks)
            di->locks = arena_array(&plan->memory, (size_t)item->n_in, sizeof *di->locks);
        add_lock(di, value->variable, writes(item, k));
    }
    if (di->n_locks > 1)
        qsort(di->locks, (size_t)di->n_locks, sizeof *di->locks, by_id);
}

static bool only_reads(const struct dynamic *d, const struct plan *plan)
{
    for (size_t i = 0; i < plan->items.n; i++) {
        if (plan->items.items[i].flags & KERNEL_ASYNC)
            return false;
        for (int k = 0; k < d->items[i].n_locks; k++)
            if (d->items[i].locks[k].write)
                return false;
    }
    return true;
}

/* The locks of all items become those of the step. */
static void keep_locks(struct dynamic *d, struct plan *plan)
{
    VEC(struct variable_lock) all = VEC_INIT;
    for (size_t i = 0; i < plan->items.n; i++) {
        for (int k = 0; k < d->items[i].n_locks; k++)
            vec_push(&all, d->items[i].locks[k]);
        d->items[i].n_locks = 0;
    }
    if (all.n)
        qsort(all.items, all.n, sizeof *all.items, by_id);
    for (size_t i = 0; i < all.n; i++)
        if (!i || all.items[i].variable != all.items[i - 1].variable)
            vec_push(&d->kept, all.items[i].variable);
    vec_release(&all);
}

void dynamic_find_locks(struct plan *plan)
{
    struct dynamic *d = plan->dynamic;
    for (size_t i = 0; i < plan->items.n; i++)
        if (!plan->items.items[i].removed)
            collect_locks(d, plan, (int)i);
    d->keeps_reads = only_reads(d, plan);
    if (d->keeps_reads)
        keep_locks(d, plan);
}
