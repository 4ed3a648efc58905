/* SPDX-License-Identifier: Apache-2.0
 *
 * What is dead in a step of a static plan. Each item that may be says so of itself and of what it
 * brings when its turn comes, so nothing is left of the step before.
 */
#include "exec/run/static.h"

static bool *of_item(struct instance *instance, const struct item *item)
{
    const struct plan *plan = instance->plan;
    return instance->dead + plan->values.n + (item - plan->items.items);
}

/* One input that is alive will do. The kernel gets those, and NULL in place of the others. */
static bool bind_merge(struct instance *instance, const struct static_call *c)
{
    const struct item *item = c->host.item;
    struct tensor **in = instance->pointers + (c->call.in - instance->pointers);
    bool any = false;
    for (int i = 0; i < item->n_in; i++) {
        bool dead = instance->dead[item->in[i]];
        in[i] = dead ? NULL : instance_tensor(instance, item->in[i]);
        any |= !dead;
    }
    return any;
}

static bool has_all(struct instance *instance, const struct item *item)
{
    bool dead = false;
    for (int i = 0; i < item->n_in && !dead; i++)
        dead = instance->dead[item->in[i]];
    for (int i = 0; i < item->n_controls && !dead; i++)
        dead = *of_item(instance, &instance->plan->items.items[item->controls[i]]);
    return !dead;
}

static void set_dead(struct instance *instance, const struct item *item, bool dead)
{
    *of_item(instance, item) = dead;
    for (int i = 0; i < item->n_out; i++)
        instance->dead[item->out[i]] = dead;
}

bool branch_begin(struct instance *instance, const struct static_call *c)
{
    const struct item *item = c->host.item;
    bool runs = item->flow == FLOW_MERGE ? bind_merge(instance, c) : has_all(instance, item);
    set_dead(instance, item, !runs);
    return !runs;
}

void branch_end(struct instance *instance, const struct static_call *c)
{
    const struct item *item = c->host.item;
    if (item->flow != FLOW_SWITCH)
        return;
    int left = !*(const bool *)c->call.in[1]->data;
    instance->dead[item->out[left]] = true;
    instance->tensors[item->out[left]].data = NULL; /* nobody looks at it */
}
