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
                 {"Recv", ROLE_RECV}};
    bool is_wiring = !item->is_point && item->node && node_is(item->node, "Enter");
    for (size_t i = 0; !is_wiring && item->node && i < sizeof roles / sizeof *roles; i++)
        if (node_is(item->node, roles[i].op))
            return roles[i].role;
    return ROLE_PLAIN;
}

/* ---- frames ---- */

static void place_in_frame(struct dynamic *d, const struct plan *plan, int id)
{
    const struct item *item = &plan->items.items[id];
    struct dynamic_item *di = &d->items[id];
    struct dynamic_frame *frame = &d->frames.items[di->frame];
    if (item->removed)
        return;
    di->local = frame->n_items++;
    di->first_input = frame->n_inputs;
    di->first_output = frame->n_outputs;
    frame->n_inputs += item->n_in;
    frame->n_outputs += item->n_out;
    vec_push(&frame->items, id);
    if (di->role == ROLE_EXIT)
        vec_push(&frame->exits, id);
    if (di->role == ROLE_ENTER)
        d->frames.items[di->child_frame].n_enters++;
}

int dynamic_common_frame(const struct dynamic *d, int a, int b)
{
    while (a != b) { /* parents come before children */
        if (a > b)
            a = d->frames.items[a].parent;
        else
            b = d->frames.items[b].parent;
    }
    return a;
}

int dynamic_frame_below(const struct dynamic *d, int outer, int frame)
{
    while (frame > outer && d->frames.items[frame].parent != outer)
        frame = d->frames.items[frame].parent;
    return frame;
}

static void add_frames(struct dynamic *d, const struct plan *plan)
{
    for (int i = 0; i < (int)plan->loops.n; i++) {
        struct dynamic_frame frame = {.has_order = plan_has_order(plan, i),
                                      .name = "",
                                      .parent = -1,
                                      .parallel_iterations = 1};
        if (i) {
            const struct graph_frame *of = &plan->frames->frames.items[i];
            frame.name = of->name;
            frame.key = while_key(of->name);
            frame.parent = of->parent;
            frame.parallel_iterations = of->parallel_iterations;
        }
        vec_push(&d->frames, frame);
    }
}

static void add_item(struct dynamic *d, struct plan *plan, int id)
{
    struct item *item = &plan->items.items[id];
    struct dynamic_item *di = &d->items[id];
    di->head = id;
    di->role = role_of(item);
    di->is_cheap = item_is_cheap(plan, item);
    di->frame = item->frame;
    di->region = -1;
    item->is_point |= di->role != ROLE_PLAIN;
    if (di->role == ROLE_ENTER) {
        di->is_constant = node_bool(item->node, "is_constant");
        di->child_frame = frames_output(plan->frames, item->node);
    }
    if (!plan_is_repeated(plan, item))
        place_in_frame(d, plan, id);
}

static void make_room(struct dynamic *d, struct plan *plan, int n)
{
    struct dynamic_item *items = arena_array(&plan->memory, (size_t)n + 1, sizeof *items);
    if (d->n_items)
        memcpy(items, d->items, (size_t)d->n_items * sizeof *items);
    d->items = items;
    d->n_items = n;
}

void dynamic_add_item(struct plan *plan, int item)
{
    struct dynamic *d = plan->dynamic;
    if (item >= d->n_items)
        make_room(d, plan, 2 * item + 1);
    d->items[item].is_cheap = item_is_cheap(plan, &plan->items.items[item]);
    d->items[item].head = item;
    place_in_frame(d, plan, item);
}

void dynamic_new(struct plan *plan)
{
    struct dynamic *d = mem_alloc(sizeof *d);
    plan->dynamic = d;
    make_room(d, plan, (int)plan->items.n);
    d->threads = plan->options.threads > 0 ? plan->options.threads : 1;
    plan->pool = pool_new(plan->options.device, true);
    if (!plan->options.device->is_host)
        plan->host_pool = pool_new(plan->options.device, false);
    add_frames(d, plan);
    for (size_t i = 0; i < plan->items.n; i++)
        add_item(d, plan, (int)i);
}

/* ---- what is in order ---- */

/* Positions from `first` on are a region of the frame. */
static void add_region(struct plan *plan, int frame, int first)
{
    struct dynamic *d = plan->dynamic;
    struct dynamic_frame *f = &d->frames.items[frame];
    struct region region = {.items = f->order.items + first,
                            .frame = frame,
                            .first = first,
                            .n = (int)f->order.n - first};
    int head = region.n ? region.items->item : 0;
    for (int i = 0; i < region.n; i++)
        d->items[region.items[i].item].region = (int)d->regions.n;
    d->items[head].local = f->n_items++;
    vec_push(&f->items, head);
    vec_push(&d->regions, region);
}

static void add_to_order(struct plan *plan, int id)
{
    struct dynamic *d = plan->dynamic;
    const struct item *item = &plan->items.items[id];
    struct dynamic_frame *frame = &d->frames.items[item->frame];
    struct region_item entry = {.item = id, .looks = item->seen != NULL};
    d->items[id] = (struct dynamic_item){.frame = item->frame,
                                         .position = (int)frame->order.n,
                                         .first_input = frame->n_inputs,
                                         .first_output = frame->n_outputs};
    frame->n_inputs += item->n_in;
    frame->n_outputs += item->n_out;
    vec_push(&frame->order, entry);
    for (int i = 0; i < item->n_out; i++) {
        const struct value *value = &plan->values.items[item->out[i]];
        if (value->kind == VALUE_COMPUTED && value->is_counted)
            vec_push(&frame->counted, item->out[i]);
    }
}

void dynamic_add_order(struct plan *plan)
{
    if (plan->is_whole) {
        plan->dynamic = mem_alloc(sizeof *plan->dynamic);
        make_room(plan->dynamic, plan, (int)plan->items.n);
        add_frames(plan->dynamic, plan);
    }
    struct dynamic *d = plan->dynamic;
    for (int at = 0; at < plan->n_order; at++)
        add_to_order(plan, plan->order[at]);
    for (int i = 0; i < (int)plan->loops.n; i++) {
        struct dynamic_frame *frame = &d->frames.items[i];
        int n_condition = 0;
        if (!frame->has_order)
            continue;
        for (size_t k = 0; i && k < frame->order.n; k++)
            n_condition += plan->items.items[frame->order.items[k].item].in_condition;
        frame->waits = arena_array(&plan->memory, 3, sizeof *frame->waits);
        add_region(plan, i, 0);
        if (!i)
            continue;
        d->regions.items[d->regions.n - 1].n = n_condition;
        add_region(plan, i, n_condition);
    }
}
