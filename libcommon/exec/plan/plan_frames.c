/* SPDX-License-Identifier: Apache-2.0
 *
 * What runs in each frame.
 */
#include <string.h>

#include "base/memory.h"
#include "exec/device/pool.h"
#include "exec/plan/region_private.h"

static enum item_role role_of(const struct item *item)
{
    static const struct {
        const char *op;
        enum item_role role;
    } roles[] = {{"Merge", ROLE_MERGE},
                 {"Enter", ROLE_ENTER},
                 {"Exit", ROLE_EXIT},
                 {"NextIteration", ROLE_NEXT},
                 {"ControlTrigger", ROLE_TRIGGER},
                 {"Send", ROLE_SEND},
                 {"Recv", ROLE_RECV},
                 {"SendGroup", ROLE_SEND},
                 {"RecvGroup", ROLE_RECV}};
    bool is_wiring = !item->is_point && item->node && node_is(item->node, "Enter");
    for (size_t i = 0; !is_wiring && item->node && i < sizeof roles / sizeof *roles; i++)
        if (node_is(item->node, roles[i].op))
            return roles[i].role;
    return ROLE_PLAIN;
}

static void set_role(struct plan *plan, int id)
{
    struct item *item = &plan->items.items[id];
    item->role = role_of(item);
    item->is_point |= item->role != ROLE_PLAIN;
    if (item->role == ROLE_ENTER) {
        item->is_constant = node_bool(item->node, "is_constant");
        item->child_frame = frames_output(plan->graph_frames, item->node);
        plan->frames.items[item->child_frame].n_enters++;
    } else if (item->role == ROLE_EXIT) {
        vec_push(&plan->frames.items[item->frame].exits, id);
    }
}

void plan_find_roles(struct plan *plan)
{
    for (size_t i = 0; i < plan->items.n; i++)
        if (!plan->items.items[i].removed && !plan_is_repeated(plan, &plan->items.items[i]))
            set_role(plan, (int)i);
}

/* ---- what an iteration has ---- */

static void add_head(struct plan *plan, int id)
{
    struct plan_frame *frame = &plan->frames.items[plan->items.items[id].frame];
    plan->items.items[id].local = (int)frame->heads.n;
    vec_push(&frame->heads, id);
}

static void add_to_frame(struct plan *plan, struct item *item)
{
    struct plan_frame *frame = &plan->frames.items[item->frame];
    item->first_input = frame->n_inputs;
    item->first_output = frame->n_outputs;
    frame->n_inputs += item->n_in;
    frame->n_outputs += item->n_out;
    for (int i = 0; i < item->n_out && frame->has_order; i++)
        if (plan->values.items[item->out[i]].kind == VALUE_COMPUTED &&
            plan->values.items[item->out[i]].is_counted)
            vec_push(&frame->counted, item->out[i]);
}

/* A point is a region by itself, behind all that has planned memory: it has its scratch alone, as
 * it may run at any time. */
static void add_point(struct plan *plan, int id)
{
    struct item *item = &plan->items.items[id];
    struct plan_frame *frame = &plan->frames.items[item->frame];
    size_t *arena = &frame->arena_bytes[!plan->options.device->is_host];
    item->region = (int)plan->regions.n;
    item->position = (int)frame->order.n;
    item->scratch_offset = (int64_t)*arena;
    *arena += item->scratch_bytes;
    item->is_cheap = item_is_cheap(plan, item);
    struct region region = {.frame = item->frame,
                            .first = item->position,
                            .n = 1,
                            .rank = -1,
                            .is_point = true,
                            .is_cheap = item->is_cheap};
    vec_push(&plan->regions, region);
    vec_push(&frame->order, ((struct region_item){.item = id}));
    add_to_frame(plan, item);
}

/* Regions that one order runs have the numbers of their places in it. */
void plan_fill_frames(struct plan *plan)
{
    for (int at = 0; at < plan->n_order; at++) {
        struct item *item = &plan->items.items[plan->order[at]];
        add_to_frame(plan, item);
        if (item->head == plan->order[at] && plan_has_order(plan, item->frame))
            add_head(plan, item->head);
    }
    for (int i = 0; i < (int)plan->items.n; i++) {
        struct item *item = &plan->items.items[i];
        if (item->removed || plan_has_order(plan, item->frame))
            continue;
        if (item->region < 0)
            add_point(plan, i);
        if (item->head == i)
            add_head(plan, i);
    }
    vec_each(region, &plan->regions) {
        region->items = plan->frames.items[region->frame].order.items + region->first;
    }
}
