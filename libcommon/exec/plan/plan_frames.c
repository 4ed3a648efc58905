/* SPDX-License-Identifier: Apache-2.0
 *
 * The frames of a dynamic plan's items.
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

static int child_frame(struct dynamic *d, int parent, const struct node *enter)
{
    const char *name = node_string(enter, "frame_name");
    for (size_t i = 1; i < d->frames.n; i++)
        if (d->frames.items[i].parent == parent && !strcmp(d->frames.items[i].name, name))
            return (int)i;
    struct dynamic_frame frame = {.name = name, .key = while_key(name), .parent = parent};
    frame.parallel_iterations = (int)node_int(enter, "parallel_iterations");
    vec_push(&d->frames, frame);
    return (int)d->frames.n - 1;
}

/* The frame that a producer's outputs are in. */
static int output_frame(const struct dynamic *d, int item)
{
    const struct dynamic_item *di = &d->items[item];
    if (di->role == ROLE_ENTER)
        return di->child_frame;
    if (di->role == ROLE_EXIT)
        return d->frames.items[di->frame].parent;
    return di->frame;
}

static int frame_conflict(const struct dynamic *d, const struct item *item, int a, int b,
                          struct error *err)
{
    error_set(err, ERR_DATA, "inputs come from different loops ('%s' and '%s')",
              a ? d->frames.items[a].name : "none", b ? d->frames.items[b].name : "none");
    return item_fail(item, err);
}

static int meet_frame(const struct dynamic *d, const struct item *item, int from, int *frame,
                      struct error *err)
{
    int other = output_frame(d, from);
    if (*frame >= 0 && *frame != other)
        return frame_conflict(d, item, *frame, other, err);
    *frame = other;
    return 0;
}

/* Items are in topological order but for back edges, so that producers come first. */
static int find_frame(struct dynamic *d, const struct plan *plan, int id, struct error *err)
{
    const struct item *item = &plan->items.items[id];
    struct dynamic_item *di = &d->items[id];
    int frame = -1, code = 0;
    for (int k = 0; !code && k < item->n_in; k++) {
        int from = plan->values.items[item->in[k]].item;
        if (from >= 0 && from < id)
            code = meet_frame(d, item, from, &frame, err);
    }
    for (int k = 0; !code && k < item->n_controls; k++)
        if (!plan->items.items[item->controls[k]].removed)
            code = meet_frame(d, item, item->controls[k], &frame, err);
    if (code)
        return code;
    di->frame = frame < 0 ? 0 : frame;
    if (di->role == ROLE_ENTER)
        di->child_frame = child_frame(d, di->frame, item->node);
    if (di->role == ROLE_EXIT && di->frame == 0) {
        error_set(err, ERR_DATA, "Exit outside of a loop");
        return item_fail(item, err);
    }
    if (item->builtin == BUILTIN_FETCH && di->frame != 0)
        return error_set(err, ERR_DATA, "a value inside the loop '%s' cannot be fetched",
                         d->frames.items[di->frame].name);
    return 0;
}

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
    struct dynamic_frame root = {
        .has_order = plan->is_whole, .name = "", .parent = -1, .parallel_iterations = 1};
    vec_push(&d->frames, root);
    for (size_t i = 1; i < plan->loops.n; i++) {
        const struct while_loop *loop = &plan->loops.items[i];
        struct dynamic_frame frame = {.has_order = true,
                                      .name = loop->frame,
                                      .key = loop->key,
                                      .parent = loop->parent,
                                      .parallel_iterations = 1};
        vec_push(&d->frames, frame);
    }
}

static int analyse(struct dynamic *d, struct plan *plan, struct error *err)
{
    add_frames(d, plan);
    for (size_t i = 0; i < plan->items.n; i++) {
        d->items[i].head = (int)i;
        d->items[i].role = role_of(&plan->items.items[i]);
        d->items[i].is_cheap = item_is_cheap(plan, &plan->items.items[i]);
        plan->items.items[i].is_point |= d->items[i].role != ROLE_PLAIN;
        if (d->items[i].role == ROLE_ENTER)
            d->items[i].is_constant = node_bool(plan->items.items[i].node, "is_constant");
    }
    for (size_t i = 0; i < plan->items.n; i++) {
        d->items[i].frame = plan->items.items[i].loop;
        d->items[i].region = -1;
        if (plan->items.items[i].loop)
            continue;
        int code = find_frame(d, plan, (int)i, err);
        if (code)
            return code;
        place_in_frame(d, plan, (int)i);
    }
    return 0;
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

int dynamic_new(struct plan *plan, struct error *err)
{
    struct dynamic *d = mem_alloc(sizeof *d);
    plan->dynamic = d;
    make_room(d, plan, (int)plan->items.n);
    d->threads = plan->options.threads > 0 ? plan->options.threads : 1;
    plan->pool = pool_new(plan->options.device, true);
    if (!plan->options.device->is_host)
        plan->host_pool = pool_new(plan->options.device, false);
    return analyse(d, plan, err);
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
    struct dynamic_frame *frame = &d->frames.items[item->loop];
    struct region_item entry = {.item = id, .looks = item->seen != NULL};
    d->items[id] = (struct dynamic_item){.frame = item->loop,
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
