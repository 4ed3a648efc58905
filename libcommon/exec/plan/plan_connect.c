/* SPDX-License-Identifier: Apache-2.0
 *
 * The edges of a dynamic plan: what each item waits for, where its outputs go.
 */
#include <string.h>

#include "base/memory.h"
#include "exec/plan/region_private.h"

typedef VEC(struct out_edge) edge_vec;

static struct out_edge edge_to(const struct plan *plan, int slot, int item, int input, bool is_ref)
{
    const struct item *at = &plan->items.items[item];
    return (struct out_edge){.slot = slot,
                             .item = item,
                             .input = input,
                             .is_ref = is_ref,
                             .is_to_merge = at->role == ROLE_MERGE,
                             .waits = plan->items.items[at->head].local,
                             .place = at->first_input + (input < 0 ? 0 : input)};
}

static void count_arrival(struct plan *plan, int id, int input, int from)
{
    struct item *at = &plan->items.items[plan->items.items[id].head];
    if (at->role != ROLE_MERGE || input < 0) {
        at->pending++;
        return;
    }
    const struct item *producer = &plan->items.items[from];
    if (producer->node && node_is(producer->node, "NextIteration"))
        at->merge_next++;
    else
        at->merge_first++;
}

/* Adds no edge within a region, where the order says what comes first. */
static void add_out_edge(struct plan *plan, edge_vec *of, int from, struct out_edge edge)
{
    int region = plan->items.items[from].region;
    if (region >= 0 && region == plan->items.items[edge.item].region)
        return;
    vec_push(&of[from], edge);
    count_arrival(plan, edge.item, edge.input, from);
}

static void add_wait(struct plan *plan, edge_vec *of, int before, int loop, int id)
{
    struct out_edge edge = edge_to(plan, -1, id, EDGE_AFTER, false);
    if (loop < 0) {
        add_out_edge(plan, of, before, edge);
    } else {
        vec_push(&plan->frames.items[loop].over, edge);
        count_arrival(plan, edge.item, edge.input, before);
    }
}

/* An order with a loop is one with all of it: the item waits until the loop is over, or everything
 * that enters the loop waits. */
static void add_after(struct plan *plan, edge_vec *of, int before, int id)
{
    int from = plan->items.items[before].frame, to = plan->items.items[id].frame;
    int common = access_common_frame(plan->parents, from, to);
    from = access_frame_below(plan->parents, common, from);
    to = access_frame_below(plan->parents, common, to);
    int loop = from == common ? -1 : from;
    if (to == common)
        add_wait(plan, of, before, loop, id);
    for (size_t i = 0; to != common && i < plan->items.n; i++)
        if (plan->items.items[i].role == ROLE_ENTER && plan->items.items[i].child_frame == to)
            add_wait(plan, of, before, loop, (int)i);
}

static void collect_edges(struct plan *plan, int id, edge_vec *of)
{
    struct item *item = &plan->items.items[id];
    for (int k = 0; k < item->n_in; k++) {
        const struct value *value = &plan->values.items[item->in[k]];
        if (value->item >= 0) {
            int slot = item->in[k] - plan->items.items[value->item].out[0];
            add_out_edge(plan, of, value->item, edge_to(plan, slot, id, k, value->is_ref));
        } else if (item->role == ROLE_MERGE) {
            item->merge_ready = true;
        }
    }
    for (int k = 0; k < item->n_controls; k++)
        if (!plan->items.items[item->controls[k]].removed)
            add_out_edge(plan, of, item->controls[k], edge_to(plan, -1, id, EDGE_CONTROL, false));
    for (size_t k = 0; k < item->after.n; k++)
        add_after(plan, of, item->after.items[k], id);
}

/* The last consumer that is told of a value has it alone, and no count of holders changes, where
 * the outputs are let go of as soon as all that wait for them have been told. */
static void find_gifts(const struct plan *plan, const struct item *item)
{
    struct out_edge *edges = plan->edges + item->first_edge;
    bool moves = item_moves(item);
    bool lets_go = item->n_edges && !moves && plan->regions.items[item->region].n == 1;
    for (int i = 0; lets_go && i < item->n_out; i++) {
        int last = item->n_edges - 1;
        while (last >= 0 && edges[last].slot != i)
            last--;
        const struct value *value = &plan->values.items[item->out[i]];
        if (last >= 0 && !edges[last].is_to_merge && value->offset < 0 && !value->is_ref)
            edges[last].gives = true;
    }
}

/* Items that wait for other tasks begin when those that other tasks wait for have been sent, as far
 * as that is cheap. */
static void find_roots(const struct plan *plan, struct plan_frame *root)
{
    for (size_t i = 0; i < 2 * root->heads.n; i++) {
        const struct item *item = &plan->items.items[root->heads.items[i % root->heads.n]];
        bool is_recv = item->role == ROLE_RECV,
             is_root = item->role == ROLE_MERGE || !item->pending;
        if (is_root && is_recv == (i >= root->heads.n))
            vec_push(&root->roots, item->local);
    }
}

void plan_connect(struct plan *plan)
{
    size_t n_edges = 0;
    edge_vec *of = mem_array(plan->items.n + 1, sizeof *of);
    for (size_t i = 0; i < plan->items.n; i++)
        if (!plan->items.items[i].removed && !plan_has_order(plan, plan->items.items[i].frame))
            collect_edges(plan, (int)i, of);
    for (size_t i = 0; i < plan->items.n; i++)
        n_edges += of[i].n;
    plan->edges = arena_array(&plan->memory, n_edges + 1, sizeof *plan->edges);
    n_edges = 0;
    for (size_t i = 0; i < plan->items.n; i++) {
        struct item *item = &plan->items.items[i];
        item->first_edge = (int)n_edges;
        item->n_edges = (int)of[i].n;
        if (of[i].n)
            memcpy(plan->edges + n_edges, of[i].items, of[i].n * sizeof *of[i].items);
        n_edges += of[i].n;
        vec_release(&of[i]);
        find_gifts(plan, item);
    }
    mem_free(of);
    vec_each(frame, &plan->frames) {
        frame->waits = arena_array(&plan->memory, frame->heads.n + 1, sizeof *frame->waits);
        for (size_t k = 0; k < frame->heads.n; k++) /* what an iteration begins with */
            frame->waits[k].pending = plan->items.items[frame->heads.items[k]].pending;
    }
    find_roots(plan, &plan->frames.items[0]);
    plan_find_locks(plan);
    region_prepare(plan);
}
