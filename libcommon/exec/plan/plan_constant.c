/* SPDX-License-Identifier: Apache-2.0
 *
 * Constants of loops and branches in a dynamic plan. As an item such a constant would arrive, in
 * each iteration anew, and who takes it would be in a region of its own for that. Where kernels
 * alone take it there is no need: they wait for what it waits for, and find it in the plan.
 */
#include "base/memory.h"
#include "exec/plan/plan_steps.h"

/* By item: who is taken by others, and who has to be there. Points and fetches look at what
 * arrives, who sees it in another shape at its own tensor. */
static void look_at_inputs(const struct plan *plan, const struct item *item, bool *taken,
                           bool *kept)
{
    bool looks = item->is_point || item->builtin == BUILTIN_FETCH;
    for (int k = 0; k < item->n_in && !item->removed; k++) {
        int from = plan_maker(plan, item, k);
        if (from < 0)
            continue;
        taken[from] = true;
        kept[from] |= looks || (item->seen && item->seen[k]);
    }
}

/* That an item is over is waited for. */
static void look_at_order(const struct plan *plan, int id, bool *kept)
{
    const struct item *item = &plan->items.items[id];
    for (int k = 0; k < item->n_controls; k++) {
        kept[item->controls[k]] = true;
        kept[id] |= plan->items.items[item->controls[k]].removed;
    }
    for (size_t k = 0; k < item->after.n; k++)
        kept[item->after.items[k]] = true;
    kept[id] |= item->after.n > 0;
}

static bool is_constant(const struct plan *plan, int id)
{
    const struct item *item = &plan->items.items[id];
    return !item->removed && !plan_is_repeated(plan, item) && item->n_out == 1 && !item->n_in &&
           plan->values.items[item->out[0]].kind == VALUE_CONSTANT;
}

/* What it is given by the other item is dead if that is. */
static bool waits_for(const struct plan *plan, const struct item *item, int other)
{
    bool waits = false;
    for (int i = 0; i < item->n_in; i++)
        waits |= plan_maker(plan, item, i) == other;
    for (int i = 0; i < item->n_controls; i++)
        waits |= item->controls[i] == other;
    return waits;
}

static void wait_instead(struct plan *plan, struct item *item, const struct item *constant)
{
    size_t n = (size_t)item->n_controls + (size_t)constant->n_controls;
    int *controls = arena_array(&plan->memory, n + 1, sizeof *controls);
    for (int i = 0; i < item->n_controls; i++)
        controls[i] = item->controls[i];
    item->controls = controls;
    for (int i = 0; i < constant->n_controls; i++)
        if (!waits_for(plan, item, constant->controls[i]))
            controls[item->n_controls++] = constant->controls[i];
}

static void take_in(struct plan *plan, const bool *left_out, struct item *item)
{
    for (int k = 0; k < item->n_in && !item->removed; k++) {
        int from = plan_maker(plan, item, k);
        if (from >= 0 && left_out[from])
            wait_instead(plan, item, &plan->items.items[from]);
    }
}

void plan_take_in_constants(struct plan *plan)
{
    size_t n = plan->options.device->is_host ? plan->items.n : 0;
    bool *kept = mem_array(n + 1, sizeof *kept), *taken = mem_array(n + 1, sizeof *taken);
    bool *left_out = mem_array(n + 1, sizeof *left_out);
    for (size_t i = 0; i < n; i++) {
        look_at_inputs(plan, &plan->items.items[i], taken, kept);
        look_at_order(plan, (int)i, kept);
    }
    for (size_t i = 0; n && i < plan->wishes.n; i++)
        kept[plan->wishes.items[i].from] = kept[plan->wishes.items[i].to] = true;
    for (size_t i = 0; i < n; i++)
        left_out[i] = taken[i] && !kept[i] && is_constant(plan, (int)i);
    for (size_t i = 0; i < n; i++)
        take_in(plan, left_out, &plan->items.items[i]);
    for (size_t i = 0; i < n; i++) {
        if (!left_out[i])
            continue;
        plan->items.items[i].removed = true;
        plan->values.items[plan->items.items[i].out[0]].item = -1;
    }
    mem_free(left_out);
    mem_free(taken);
    mem_free(kept);
}
