/* SPDX-License-Identifier: Apache-2.0
 *
 * What the dynamic executor needs to know of a plan, found once: the frame of each item, what it
 * waits for, where its outputs go.
 */
#include <string.h>

#include "base/memory.h"
#include "exec/run/dynamic.h"

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
    for (size_t i = 0; item->node && i < sizeof roles / sizeof *roles; i++)
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
    if (item->code == &plan_fetch_code && di->frame != 0)
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

/* ---- edges ---- */

typedef VEC(struct out_edge) edge_vec;

static struct out_edge edge_to(const struct dynamic *d, int slot, int item, int input, bool is_ref)
{
    const struct dynamic_item *di = &d->items[item];
    return (struct out_edge){.slot = slot,
                             .item = item,
                             .input = input,
                             .is_ref = is_ref,
                             .is_to_merge = di->role == ROLE_MERGE,
                             .waits = d->items[di->head].local,
                             .place = di->first_input + (input < 0 ? 0 : input)};
}

static void count_arrival(struct dynamic *d, const struct plan *plan, int id, int input, int from)
{
    struct dynamic_item *di = &d->items[d->items[id].head];
    if (di->role != ROLE_MERGE || input < 0) {
        di->pending++;
        return;
    }
    const struct item *producer = &plan->items.items[from];
    if (producer->node && node_is(producer->node, "NextIteration"))
        di->merge_next++;
    else
        di->merge_first++;
}

/* Within a region the order says what comes first. */
static void add_edge(struct dynamic *d, const struct plan *plan, edge_vec *of, int from,
                     struct out_edge edge)
{
    if (d->items[from].region >= 0 && d->items[from].region == d->items[edge.item].region)
        return;
    vec_push(&of[from], edge);
    count_arrival(d, plan, edge.item, edge.input, from);
}

static void add_wait(struct dynamic *d, const struct plan *plan, edge_vec *of, int before, int loop,
                     int id)
{
    struct out_edge edge = edge_to(d, -1, id, EDGE_AFTER, false);
    if (loop < 0) {
        add_edge(d, plan, of, before, edge);
    } else {
        vec_push(&d->frames.items[loop].over, edge);
        count_arrival(d, plan, edge.item, edge.input, before);
    }
}

/* That a loop comes first or second is for all of it: the item waits until the loop is over, or
 * everything that enters the loop waits. */
static void add_after(struct dynamic *d, const struct plan *plan, edge_vec *of, int before, int id)
{
    int common = dynamic_common_frame(d, d->items[before].frame, d->items[id].frame);
    int from = dynamic_frame_below(d, common, d->items[before].frame);
    int to = dynamic_frame_below(d, common, d->items[id].frame);
    int loop = from == common ? -1 : from;
    if (to == common)
        add_wait(d, plan, of, before, loop, id);
    for (size_t i = 0; to != common && i < plan->items.n; i++)
        if (d->items[i].role == ROLE_ENTER && d->items[i].child_frame == to)
            add_wait(d, plan, of, before, loop, (int)i);
}

static void collect_edges(struct dynamic *d, const struct plan *plan, int id, edge_vec *of)
{
    const struct item *item = &plan->items.items[id];
    for (int k = 0; k < item->n_in; k++) {
        const struct value *value = &plan->values.items[item->in[k]];
        if (value->item >= 0) {
            int slot = item->in[k] - plan->items.items[value->item].out[0];
            add_edge(d, plan, of, value->item, edge_to(d, slot, id, k, value->is_ref));
        } else if (d->items[id].role == ROLE_MERGE) {
            d->items[id].merge_ready = true;
        }
    }
    for (int k = 0; k < item->n_controls; k++)
        if (!plan->items.items[item->controls[k]].removed)
            add_edge(d, plan, of, item->controls[k], edge_to(d, -1, id, EDGE_CONTROL, false));
    for (size_t k = 0; k < item->after.n; k++)
        add_after(d, plan, of, item->after.items[k], id);
}

/* Whether the item's outputs are let go of as soon as all that wait for them have been told. */
static bool lets_go(const struct dynamic *d, int id)
{
    const struct dynamic_item *di = &d->items[id];
    bool moves = di->role == ROLE_ENTER || di->role == ROLE_NEXT || di->role == ROLE_EXIT;
    return di->region < 0 ? !moves : d->regions.items[di->region].n == 1;
}

/* Who is told last of a value has it alone, and no count of holders changes. */
static void find_gifts(const struct dynamic *d, const struct plan *plan, int id)
{
    const struct item *item = &plan->items.items[id];
    struct out_edge *edges = d->edges + d->items[id].first_edge;
    for (int i = 0; lets_go(d, id) && i < item->n_out; i++) {
        int last = d->items[id].n_edges - 1;
        while (last >= 0 && edges[last].slot != i)
            last--;
        const struct value *value = &plan->values.items[item->out[i]];
        if (last >= 0 && !edges[last].is_to_merge && value->offset < 0 && !value->is_ref)
            edges[last].gives = true;
    }
}

static void flatten_edges(struct dynamic *d, struct plan *plan, edge_vec *of)
{
    size_t n = 0, at = 0;
    for (size_t i = 0; i < plan->items.n; i++)
        n += of[i].n;
    d->edges = arena_array(&plan->memory, n + 1, sizeof *d->edges);
    for (size_t i = 0; i < plan->items.n; i++) {
        d->items[i].first_edge = (int)at;
        d->items[i].n_edges = (int)of[i].n;
        if (of[i].n)
            memcpy(d->edges + at, of[i].items, of[i].n * sizeof *of[i].items);
        at += of[i].n;
        vec_release(&of[i]);
    }
}

/* What an iteration of the frame begins with. */
static void find_waits(struct dynamic *d, struct plan *plan, struct dynamic_frame *frame)
{
    frame->waits = arena_array(&plan->memory, frame->items.n + 1, sizeof *frame->waits);
    for (size_t i = 0; i < frame->items.n; i++) {
        const struct dynamic_item *di = &d->items[frame->items.items[i]];
        frame->waits[di->local] = (struct counter){.pending = di->pending};
        frame->n_heads += di->head == frame->items.items[i];
    }
}

/* What waits for others begins when what others wait for has been sent, as far as that is cheap. */
static void find_roots(const struct dynamic *d, struct dynamic_frame *root)
{
    for (size_t i = 0; i < 2 * root->items.n; i++) {
        int id = root->items.items[i % root->items.n];
        const struct dynamic_item *di = &d->items[id];
        bool is_recv = di->role == ROLE_RECV, is_root = di->role == ROLE_MERGE || !di->pending;
        if (di->head == id && is_root && is_recv == (i >= root->items.n))
            vec_push(&root->roots, di->local);
    }
}

static int analyse(struct dynamic *d, struct plan *plan, struct error *err)
{
    struct dynamic_frame root = {.name = "", .parent = -1, .parallel_iterations = 1};
    vec_push(&d->frames, root);
    for (size_t i = 0; i < plan->items.n; i++) {
        d->items[i].head = (int)i;
        d->items[i].role = role_of(&plan->items.items[i]);
        d->items[i].is_cheap = item_is_cheap(plan, &plan->items.items[i]);
        plan->items.items[i].is_point |= d->items[i].role != ROLE_PLAIN;
        if (d->items[i].role == ROLE_ENTER)
            d->items[i].is_constant = node_bool(plan->items.items[i].node, "is_constant");
    }
    for (size_t i = 0; i < plan->items.n; i++) {
        int code = find_frame(d, plan, (int)i, err);
        if (code)
            return code;
        place_in_frame(d, plan, (int)i);
    }
    return 0;
}

int dynamic_connect(struct plan *plan, struct error *err)
{
    struct dynamic *d = plan->dynamic;
    int code = region_find(plan, err);
    if (code)
        return code;
    edge_vec *of = mem_array(plan->items.n + 1, sizeof *of);
    for (size_t i = 0; i < plan->items.n; i++)
        if (!plan->items.items[i].removed)
            collect_edges(d, plan, (int)i, of);
    flatten_edges(d, plan, of);
    mem_free(of);
    for (size_t i = 0; i < plan->items.n; i++)
        if (!plan->items.items[i].removed)
            find_gifts(d, plan, (int)i);
    for (size_t i = 0; i < d->frames.n; i++)
        find_waits(d, plan, &d->frames.items[i]);
    find_roots(d, &d->frames.items[0]);
    dynamic_find_locks(plan);
    region_prepare(plan);
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
    d->pool = pool_new(plan->options.device, true);
    if (!plan->options.device->is_host)
        d->host_pool = pool_new(plan->options.device, false);
    return analyse(d, plan, err);
}
