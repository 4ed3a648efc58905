/* SPDX-License-Identifier: Apache-2.0
 *
 * The dataflow of regions: what runs in each frame, what each item waits for, where its outputs go,
 * and, once the edges are known, what is to be done at each position of a region.
 */

#include "base/memory.h"
#include "exec/plan/plan_steps.h"

/* ---- roles ---- */

void plan_find_roles(struct plan *plan)
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
    vec_each(item, &plan->items) {
        const struct node *node = item->node;
        bool is_wiring = node && !item->is_point && node_is(node, "Enter");
        if (!node || item->removed || is_wiring || plan_is_repeated(plan, item))
            continue;
        for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
            if (node_is(node, roles[i].op))
                item->role = roles[i].role;
        item->is_point |= item->role != ROLE_PLAIN;
        if (item->role == ROLE_ENTER) {
            item->is_constant = node_bool(node, "is_constant");
            item->child_frame = frames_output(plan->graph_frames, node);
        } else if (item->role == ROLE_EXIT) {
            vec_push_in(&plan->memory, &plan->frames.items[item->frame].exits,
                        (int)(item - plan->items.items));
        }
    }
}

/* ---- the contents of an iteration ---- */

static void add_head(struct plan *plan, int id)
{
    struct plan_frame *frame = &plan->frames.items[plan->items.items[id].frame];
    plan->items.items[id].local = (int)frame->heads.n;
    vec_push_in(&plan->memory, &frame->heads, id);
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
            vec_push_in(&plan->memory, &frame->counted, item->out[i]);
}

/* An async op is a region by itself. It comes after everything with planned memory and shares its
 * scratch with nothing, as it may run at any time. */
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
    vec_push_in(&plan->memory, &plan->regions, region);
    vec_push_in(&plan->memory, &frame->order, ((struct region_item){.item = id}));
    add_to_frame(plan, item);
}

/* Regions of a fixed order are numbered by their places in it. */
static void fill_frames(struct plan *plan)
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
    vec_each(frame, &plan->frames) {
        frame->waits = arena_array(&plan->memory, frame->heads.n + 1, sizeof *frame->waits);
    }
}

/* ---- edges ---- */

/* Adds an edge to input `input` of item `to` (EDGE_CONTROL, EDGE_AFTER), from output `slot` of item
 * `from`, or, if there is a `loop` (else -1), from its end; but none within a region, where the
 * order says what comes first. */
static void connect_to(struct plan *plan, int from, int loop, int slot, int to, int input)
{
    struct item *maker = &plan->items.items[from], *item = &plan->items.items[to];
    struct item *head = &plan->items.items[item->head];
    struct out_edge edge = {.slot = slot,
                            .item = to,
                            .input = input,
                            .is_ref = input >= 0 && plan->values.items[item->in[input]].is_ref,
                            .is_to_merge = item->role == ROLE_MERGE,
                            .waits = head->local,
                            .place = item->first_input + (input < 0 ? 0 : input)};
    if (loop >= 0)
        vec_push_in(&plan->memory, &plan->frames.items[loop].over, edge);
    else if (maker->region < 0 || maker->region != item->region)
        vec_push_in(&plan->memory, &maker->edges, edge);
    else
        return;
    if (!edge.is_to_merge || input < 0)
        plan->frames.items[item->frame].waits[head->local].pending++;
    else if (maker->role == ROLE_NEXT)
        item->merge_next++;
    else
        item->merge_first++;
}

/* Waiting for an item in a loop means waiting until the loop is over; if the waiting item is in a
 * loop, everything that enters that loop waits. */
static void add_after(struct plan *plan, int before, int id)
{
    int from = plan->items.items[before].frame, to = plan->items.items[id].frame;
    int common = access_common_frame(plan->parents, from, to);
    from = access_frame_below(plan->parents, common, from);
    to = access_frame_below(plan->parents, common, to);
    int loop = from == common ? -1 : from;
    if (to == common)
        connect_to(plan, before, loop, -1, id, EDGE_AFTER);
    for (size_t i = 0; to != common && i < plan->items.n; i++)
        if (plan->items.items[i].role == ROLE_ENTER && plan->items.items[i].child_frame == to)
            connect_to(plan, before, loop, -1, (int)i, EDGE_AFTER);
}

/* Where outputs are dropped as soon as all waiting items have been told, the last consumer of a
 * value gets the value itself: its reference count does not change. */
static void find_gifts(const struct plan *plan, const struct item *item)
{
    struct out_edge *edges = item->edges.items;
    bool moves = item_moves(item);
    bool lets_go = item->edges.n && !moves && plan->regions.items[item->region].n == 1;
    for (int i = 0; lets_go && i < item->n_out; i++) {
        int last = (int)item->edges.n - 1;
        while (last >= 0 && edges[last].slot != i)
            last--;
        const struct value *value = &plan->values.items[item->out[i]];
        if (last >= 0 && !edges[last].is_to_merge && value->offset < 0 && !value->is_ref)
            edges[last].gives = true;
    }
}

/* The roots are ordered so that items that wait for other tasks begin after those that other tasks
 * wait for. */
static void find_roots(struct plan *plan, struct plan_frame *root)
{
    for (size_t i = 0; i < 2 * root->heads.n; i++) {
        const struct item *item = &plan->items.items[root->heads.items[i % root->heads.n]];
        bool is_recv = item->role == ROLE_RECV,
             is_root = item->role == ROLE_MERGE || !root->waits[item->local].pending;
        if (is_root && is_recv == (i >= root->heads.n))
            vec_push_in(&plan->memory, &root->roots, item->local);
    }
}

/* ---- what is to be done at each position ---- */

static void describe(struct plan *plan, struct region_item *at)
{
    const struct item *item = &plan->items.items[at->item];
    for (int i = 0; i < item->n_in; i++) {
        const struct value *value = &plan->values.items[item->in[i]];
        bool is_ref = item->refs && item->refs[i], is_seen = item_sees(item, i) >= 0;
        at->gathers |= is_seen || !(is_ref || region_has_input(plan, item, i));
        at->looks |= is_seen || (value->kind == VALUE_VARIABLE && !is_ref);
    }
    at->leads = item->edges.n > 0;
    at->locks = item->locks.n > 0;
}

static void describe_region(struct plan *plan, struct region *region)
{
    struct region_item *first = plan->frames.items[region->frame].order.items + region->first;
    bool is_cheap = true;
    if (region->is_point) {
        describe(plan, first);
        first->leads = first->rest_is_cheap = region->lets_go = true;
        return;
    }
    region->is_empty = true;
    for (int k = region->n; k-- > 0;) {
        const struct item *item = &plan->items.items[first[k].item];
        describe(plan, &first[k]);
        region->leads |= first[k].leads;
        for (int i = 0; i < item->n_in && !region->frees; i++) {
            int from = plan_maker(plan, item, i); /* a reduction over all workers? */
            const struct node *node = from < 0 ? NULL : plan->items.items[from].node;
            region->frees = node && node_round(node) == ROUND_REDUCE;
        }
        region->is_empty &= (item->flags & KERNEL_EMPTY) != 0;
        region->fetches |= item->builtin == BUILTIN_FETCH;
        for (int i = 0; first[k].leads && i < item->n_out; i++)
            region->lets_go |= plan->values.items[item->out[i]].offset < 0;
        first[k].rest_is_cheap = is_cheap;
        is_cheap = is_cheap && item->is_cheap;
    }
}

#define LARGE_BYTES (1 << 20) /* worth waiting for the memory of sent values */

/* Marks where regions that free memory run first: before a large outgoing value is made, and, if
 * such regions send, as they do the next piece of a value, before each expensive item. */
static void find_relieved(struct plan *plan)
{
    bool any = false;
    vec_each(region, &plan->regions) {
        for (int k = 0; region->frees && k < region->n; k++)
            any |= plan_outgoing_bytes(plan, region->items[k].item) >= LARGE_BYTES;
    }
    vec_each(region, &plan->regions) {
        struct region_item *first = plan->frames.items[region->frame].order.items + region->first;
        bool relieves = !region->is_point && !plan_has_order(plan, region->frame);
        for (int k = 0; k < region->n && relieves; k++)
            first[k].is_relieved = plan_outgoing_bytes(plan, first[k].item) >= LARGE_BYTES ||
                                   (any && !plan->items.items[first[k].item].is_cheap);
    }
}

void plan_connect(struct plan *plan)
{
    fill_frames(plan);
    for (int i = 0; i < (int)plan->items.n; i++) {
        struct item *item = &plan->items.items[i];
        if (item->removed || plan_has_order(plan, item->frame))
            continue;
        for (struct before b = {.of_all = true}; plan_next_before(plan, i, &b);)
            if (b.is_after)
                add_after(plan, b.item, i);
            else
                connect_to(plan, b.item, -1, b.slot, i, b.input);
        for (int k = 0; k < item->n_in; k++)
            item->merge_ready |= item->role == ROLE_MERGE && plan_maker(plan, item, k) < 0;
    }
    vec_each(item, &plan->items) {
        find_gifts(plan, item);
    }
    find_roots(plan, &plan->frames.items[0]);
    plan_find_locks(plan);
    vec_each(region, &plan->regions) {
        if (!plan_has_order(plan, region->frame))
            describe_region(plan, region);
    }
    find_relieved(plan);
}
