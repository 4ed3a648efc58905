/* SPDX-License-Identifier: Apache-2.0
 *
 * What is dead in a region. Each item that may be says so of itself and of what it brings when its
 * turn comes, so nothing is left of the step before.
 */
#include "exec/run/dynamic.h"

static bool *of_item(const struct run *run, const struct item *item)
{
    return run->dead + run->plan->values.n + (item - run->plan->items.items);
}

/* One input that is alive will do. The kernel gets those, and NULL in place of the others. */
static bool bind_merge(struct run *run, struct iteration *it, const struct region_call *c)
{
    const struct item *item = c->host.item;
    int id = (int)(item - run->plan->items.items);
    struct tensor **in = it->pointers + (c->call.in - it->pointers);
    bool any = false;
    for (int i = 0; i < item->n_in; i++) {
        bool dead = run->dead[item->in[i]];
        in[i] = dead ? NULL : iteration_input(run, it, id, i);
        any |= !dead;
    }
    return any;
}

static bool has_all(const struct run *run, const struct item *item)
{
    bool dead = false;
    for (int i = 0; i < item->n_in && !dead; i++)
        dead = run->dead[item->in[i]];
    for (int i = 0; i < item->n_controls && !dead; i++)
        dead = *of_item(run, &run->plan->items.items[item->controls[i]]);
    return !dead;
}

bool branch_begin(struct run *run, struct iteration *it, const struct region_call *c)
{
    const struct item *item = c->host.item;
    bool dead = item->flow == FLOW_MERGE ? !bind_merge(run, it, c) : !has_all(run, item);
    *of_item(run, item) = dead;
    for (int i = 0; i < item->n_out; i++)
        run->dead[item->out[i]] = dead;
    return !dead;
}

void branch_end(struct run *run, struct iteration *it, const struct region_call *c)
{
    const struct item *item = c->host.item;
    if (item->flow != FLOW_SWITCH)
        return;
    int left = item->out[!*(const bool *)c->call.in[1]->data];
    run->dead[left] = true;
    iteration_output(run->plan, it, left)->data = NULL; /* nobody looks at it */
}
