/* SPDX-License-Identifier: Apache-2.0
 *
 * What runs in each frame: of a frame with an order its regions, of any other its items.
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

/* ---- frames ---- */

void plan_place_in_frame(struct plan *plan, int id)
{
    struct item *item = &plan->items.items[id];
    struct plan_frame *frame = &plan->frames.items[item->frame];
    item->is_cheap = item_is_cheap(plan, item);
    item->local = frame->n_items++;
    item->first_input = frame->n_inputs;
    item->first_output = frame->n_outputs;
    frame->n_inputs += item->n_in;
    frame->n_outputs += item->n_out;
    vec_push(&frame->items, id);
}

int plan_common_frame(const struct plan *plan, int a, int b)
{
    while (a != b) { /* parents come before children */
        if (a > b)
            a = plan->frames.items[a].parent;
        else
            b = plan->frames.items[b].parent;
    }
    return a;
}

int plan_frame_below(const struct plan *plan, int outer, int frame)
{
    while (frame > outer && plan->frames.items[frame].parent != outer)
        frame = plan->frames.items[frame].parent;
    return frame;
}

static void add_item(struct plan *plan, int id)
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
    plan_place_in_frame(plan, id);
}

void plan_fill_frames(struct plan *plan)
{
    plan->pool = pool_new(plan->options.device, true);
    if (!plan->options.device->is_host)
        plan->host_pool = pool_new(plan->options.device, false);
    for (size_t i = 0; i < plan->items.n; i++)
        if (!plan->items.items[i].removed && !plan_is_repeated(plan, &plan->items.items[i]))
            add_item(plan, (int)i);
}

/* ---- what is in order ---- */

/* Positions from `first` on are a region of the frame. */
static void add_region(struct plan *plan, int frame, int first)
{
    struct plan_frame *f = &plan->frames.items[frame];
    struct region region = {.items = f->order.items + first,
                            .frame = frame,
                            .first = first,
                            .n = (int)f->order.n - first};
    int head = region.n ? region.items->item : 0;
    for (int i = 0; i < region.n; i++)
        plan->items.items[region.items[i].item].region = (int)plan->regions.n;
    plan->items.items[head].local = f->n_items++;
    vec_push(&f->items, head);
    vec_push(&plan->regions, region);
}

void plan_add_order(struct plan *plan)
{
    for (int at = 0; at < plan->n_order; at++) {
        struct item *item = &plan->items.items[plan->order[at]];
        struct plan_frame *frame = &plan->frames.items[item->frame];
        struct region_item entry = {.item = plan->order[at], .looks = item->seen != NULL};
        item->position = (int)frame->order.n;
        item->first_input = frame->n_inputs;
        item->first_output = frame->n_outputs;
        frame->n_inputs += item->n_in;
        frame->n_outputs += item->n_out;
        vec_push(&frame->order, entry);
        for (int i = 0; i < item->n_out; i++) {
            const struct value *value = &plan->values.items[item->out[i]];
            if (value->kind == VALUE_COMPUTED && value->is_counted)
                vec_push(&frame->counted, item->out[i]);
        }
    }
    for (int i = 0; i < (int)plan->frames.n; i++) {
        struct plan_frame *frame = &plan->frames.items[i];
        int n_condition = 0;
        if (!frame->has_order || !plan->n_order)
            continue;
        for (size_t k = 0; i && k < frame->order.n; k++)
            n_condition += plan->items.items[frame->order.items[k].item].in_condition;
        frame->waits = arena_array(&plan->memory, 3, sizeof *frame->waits);
        add_region(plan, i, 0);
        if (!i)
            continue;
        plan->regions.items[plan->regions.n - 1].n = n_condition;
        add_region(plan, i, n_condition);
    }
}
