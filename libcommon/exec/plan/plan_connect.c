/* SPDX-License-Identifier: Apache-2.0
 *
 * The edges of a dynamic plan: what each item waits for, where its outputs go.
 */
#include <string.h>

#include "base/memory.h"
#include "exec/plan/region_private.h"

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

int dynamic_connect(struct plan *plan, struct error *err)
{
    struct dynamic *d = plan->dynamic;
    int code = region_find(plan, err);
    if (code)
        return code;
    edge_vec *of = mem_array(plan->items.n + 1, sizeof *of);
    for (size_t i = 0; i < plan->items.n; i++)
        if (!plan->items.items[i].removed && !plan_is_repeated(plan, &plan->items.items[i]))
            collect_edges(d, plan, (int)i, of);
    flatten_edges(d, plan, of);
    mem_free(of);
    for (size_t i = 0; i < plan->items.n; i++)
        if (!plan->items.items[i].removed && !plan_is_repeated(plan, &plan->items.items[i]))
            find_gifts(d, plan, (int)i);
    for (size_t i = 0; i < d->frames.n; i++)
        find_waits(d, plan, &d->frames.items[i]);
    find_roots(d, &d->frames.items[0]);
    plan_find_locks(plan);
    region_prepare(plan);
    return 0;
}
