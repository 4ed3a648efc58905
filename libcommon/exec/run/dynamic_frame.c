/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames and iterations of a running step: where values wait for each other, which iterations
 * exist, when a loop is over. Everything here runs with run->lock held.
 */
#include <string.h>

#include "base/memory.h"
#include "exec/run/dynamic.h"

static void check_iteration(struct run *run, struct iteration *iteration,
                            struct activation **ready);

/* ---- readiness ---- */

static void schedule(struct run *run, struct iteration *it, int local, bool is_dead,
                     struct activation **ready)
{
    struct activation *a = &it->activations[local];
    it->counters[local].fired = true;
    a->is_dead = is_dead;
    a->n_locked = a->at = a->told = 0;
    a->next = *ready;
    *ready = a;
    it->n_fired++;
    it->outstanding++;
    run->active++;
}

/* A Merge runs with its first live input; it is dead when all inputs that can come are. A back edge
 * brings nothing in iteration 0, and to its Merge nothing else comes later; a Merge without one, of
 * a conditional in the body, is the same in every iteration. */
static void check_merge(struct run *run, struct iteration *it, int local, struct activation **ready)
{
    const struct dynamic_item *di = it->activations[local].head;
    struct counter *c = &it->counters[local];
    int expected = it->number == 0 || !di->merge_next ? di->merge_first : di->merge_next;
    bool live = c->has_live || di->merge_ready;
    if (!c->fired && c->pending <= 0 && (live || c->dead >= expected))
        schedule(run, it, local, !live, ready);
}

static void check_plain(struct run *run, struct iteration *it, int local, struct activation **ready)
{
    const struct counter *c = &it->counters[local];
    if (c->pending <= 0 && !c->fired)
        schedule(run, it, local, c->dead > 0 && it->activations[local].head->role != ROLE_TRIGGER,
                 ready);
}

static void keep_input(struct token *input, const struct tensor *value)
{
    if (value->buffer)
        tensor_share(&input->tensor, value);
    else
        input->tensor = *value;
    input->is_live = true;
}

static void deliver_to_merge(struct run *run, struct iteration *it, const struct out_edge *edge,
                             const struct tensor *value, bool is_live, struct activation **ready)
{
    struct counter *c = &it->counters[edge->waits];
    if (edge->input < 0) {
        c->pending--;
    } else if (!is_live) {
        c->dead++;
    } else if (!c->has_live && !c->fired) {
        keep_input(&it->inputs[edge->place], value);
        c->has_live = true;
    }
    check_merge(run, it, edge->waits, ready);
}

/* `value`: of an edge that carries one. */
static void deliver(struct run *run, struct iteration *it, const struct out_edge *edge,
                    const struct tensor *value, bool is_live, struct activation **ready)
{
    struct counter *c = &it->counters[edge->waits];
    if (edge->is_to_merge) {
        deliver_to_merge(run, it, edge, value, is_live, ready);
        return;
    }
    if (edge->input >= 0 && is_live)
        keep_input(&it->inputs[edge->place], value);
    if (edge->input != EDGE_AFTER && !is_live)
        c->dead++;
    c->pending--;
    check_plain(run, it, edge->waits, ready);
}

/* Sends one value (output `slot` of `item`; -1: that the item is over) along its edges. */
static void send(struct run *run, struct iteration *to, int item, int slot,
                 const struct token *value, struct activation **ready)
{
    const struct dynamic *d = run->plan->dynamic;
    const struct dynamic_item *di = &d->items[item];
    for (int e = di->first_edge; e < di->first_edge + di->n_edges; e++)
        if (d->edges[e].slot == slot && d->edges[e].input != EDGE_AFTER)
            deliver(run, to, &d->edges[e], &value->tensor, value->is_live, ready);
}

static void send_with_controls(struct run *run, struct iteration *to, int item,
                               const struct token *value, struct activation **ready)
{
    struct token over = {.is_live = value->is_live};
    send(run, to, item, 0, value, ready);
    send(run, to, item, -1, &over, ready);
}

/* ---- loops ---- */

static struct iteration *start_iteration(struct run *run, struct frame *frame, int64_t number,
                                         struct activation **ready)
{
    struct iteration *it = iteration_new(run, frame, number);
    it->outstanding++; /* held until everything that waits for it was delivered */
    for (size_t i = 0; i < frame->invariants.n; i++)
        send_with_controls(run, it, frame->invariants.items[i].item,
                           &frame->invariants.items[i].value, ready);
    return it;
}

static void send_deferred(struct run *run, struct frame *frame, struct iteration *it,
                          struct activation **ready)
{
    for (size_t i = 0; i < frame->deferred.n; i++) {
        struct deferred *d = &frame->deferred.items[i];
        send_with_controls(run, it, d->item, &d->value, ready);
        tensor_release(&d->value.tensor);
    }
    frame->deferred.n = 0;
    frame->starts = false;
}

static void start_deferred(struct run *run, struct frame *frame, int64_t number,
                           struct activation **ready)
{
    struct iteration *it = start_iteration(run, frame, number, ready);
    send_deferred(run, frame, it, ready);
    it->outstanding--;
}

static struct frame *find_child(struct run *run, struct iteration *it, int index,
                                struct activation **ready)
{
    for (struct frame *f = it->children; f; f = f->next)
        if (f->index == index)
            return f;
    struct frame *frame = frame_new(run, index, it->frame, it);
    frame->next = it->children;
    it->children = frame;
    it->n_children++;
    start_iteration(run, frame, 0, ready)->outstanding--;
    return frame;
}

static void push_value(struct frame *frame, bool invariant, int item, const struct token *value)
{
    struct deferred kept = {.item = item, .value.is_live = value->is_live};
    if (value->tensor.buffer)
        tensor_share(&kept.value.tensor, &value->tensor);
    else
        kept.value.tensor = value->tensor;
    if (invariant)
        vec_push(&frame->invariants, kept);
    else
        vec_push(&frame->deferred, kept);
}

static void enter(struct run *run, struct iteration *it, int item, const struct token *value,
                  struct activation **ready)
{
    const struct dynamic_item *di = &run->plan->dynamic->items[item];
    struct frame *frame = find_child(run, it, di->child_frame, ready);
    struct iteration *first = frame->oldest;
    first->outstanding++; /* the frame must not end while we deliver */
    if (di->is_constant) {
        push_value(frame, true, item, value);
        for (struct iteration *i = frame->oldest; i; i = i->next)
            send_with_controls(run, i, item, value, ready);
    } else {
        send_with_controls(run, first, item, value, ready);
    }
    frame->enters_left--;
    first->outstanding--;
    check_iteration(run, first, ready);
}

/* A dead value starts no iteration, but if there is one it comes there, too: in an iteration
 * everything runs or is dead, on all devices that have a part of the loop. */
static void next_iteration(struct run *run, struct iteration *it, int item,
                           const struct token *value, struct activation **ready)
{
    struct frame *frame = it->frame;
    if (it->next) {
        send_with_controls(run, it->next, item, value, ready);
    } else if (value->is_live && frame->n_live < frame->def->parallel_iterations) {
        struct iteration *next = start_iteration(run, frame, it->number + 1, ready);
        send_deferred(run, frame, next, ready);
        send_with_controls(run, next, item, value, ready);
        next->outstanding--;
    } else {
        push_value(frame, false, item, value);
        frame->starts = frame->starts || value->is_live;
    }
}

static void leave(struct run *run, struct iteration *it, int item, const struct token *value,
                  struct activation **ready)
{
    struct frame *frame = it->frame;
    if (!value->is_live)
        return; /* told when the frame is over, unless a later iteration leaves alive */
    for (size_t i = 0; i < frame->def->exits.n; i++)
        if (frame->def->exits.items[i] == item)
            frame->exited[i] = true;
    send_with_controls(run, frame->parent_iteration, item, value, ready);
}

static void end_frame(struct run *run, struct frame *frame, struct activation **ready)
{
    struct iteration *parent = frame->parent_iteration;
    struct token dead = {.is_live = false};
    for (size_t i = 0; i < frame->def->exits.n; i++)
        if (!frame->exited[i])
            send_with_controls(run, parent, frame->def->exits.items[i], &dead, ready);
    for (size_t i = 0; i < frame->def->over.n; i++)
        deliver(run, parent, &frame->def->over.items[i], NULL, false, ready);
    struct frame **at = &parent->children;
    while (*at != frame)
        at = &(*at)->next;
    *at = frame->next;
    parent->n_children--;
    frame_drop(run, frame);
    check_iteration(run, parent, ready);
}

/* Iterations end in order: one is over when nothing runs in it, nothing can arrive any more and the
 * one before is gone. */
static void check_iteration(struct run *run, struct iteration *it, struct activation **ready)
{
    struct frame *frame = it->frame;
    if (!frame->parent)
        return;
    while (frame->oldest == it && it->outstanding == 0 && it->n_children == 0 &&
           frame->enters_left == 0) {
        int64_t number = frame->newest->number;
        frame->oldest = it->next;
        if (!frame->oldest)
            frame->newest = NULL;
        frame->n_live--;
        iteration_drop(run, it);
        if (frame->starts)
            start_deferred(run, frame, number + 1, ready);
        struct iteration *next = frame->oldest;
        if (!next) {
            end_frame(run, frame, ready);
            return;
        }
        it = next;
    }
}

/* ---- the interface ---- */

/* Where the output of an op that moves values between iterations goes. */
static void move(struct run *run, struct activation *a, const struct token *value,
                 struct activation **ready)
{
    switch (a->head->role) {
    case ROLE_ENTER:
        enter(run, a->iteration, a->item, value, ready);
        break;
    case ROLE_NEXT:
        next_iteration(run, a->iteration, a->item, value, ready);
        break;
    default:
        leave(run, a->iteration, a->item, value, ready);
    }
}

static void propagate_item(struct run *run, struct iteration *it, const struct dynamic_item *di,
                           bool is_dead, struct activation **ready)
{
    const struct out_edge *edges = run->plan->dynamic->edges + di->first_edge;
    const struct tensor *outputs = &it->outputs[di->first_output];
    for (int e = 0; e < di->n_edges; e++) {
        const struct tensor *value = edges[e].slot < 0 ? NULL : &outputs[edges[e].slot];
        bool is_there = !value || edges[e].is_ref || value->type != DTYPE_INVALID;
        deliver(run, it, &edges[e], value, !is_dead && is_there, ready);
    }
}

/* Of an op that moves values between iterations: what goes to the one that it is in. */
static void propagate_over(struct run *run, struct iteration *it, const struct dynamic_item *di,
                           bool is_dead, struct activation **ready)
{
    const struct out_edge *edges = run->plan->dynamic->edges + di->first_edge;
    for (int e = 0; e < di->n_edges; e++)
        if (edges[e].input == EDGE_AFTER)
            deliver(run, it, &edges[e], NULL, !is_dead, ready);
}

static void propagate_point(struct run *run, struct activation *a, struct activation **ready)
{
    const struct dynamic_item *di = a->head;
    const struct item *item = &run->plan->items.items[a->item];
    struct tensor *outputs = &a->iteration->outputs[di->first_output];
    if (di->role == ROLE_ENTER || di->role == ROLE_NEXT || di->role == ROLE_EXIT) {
        struct token value = {outputs[0], !a->is_dead};
        propagate_over(run, a->iteration, di, a->is_dead, ready);
        move(run, a, &value, ready);
    } else {
        propagate_item(run, a->iteration, di, a->is_dead, ready);
    }
    for (int i = 0; i < item->n_out; i++)
        tensor_release(&outputs[i]);
}

void frame_propagate_items(struct run *run, struct activation *a, struct activation **ready)
{
    const struct dynamic *d = run->plan->dynamic;
    const struct region_item *first = a->region->items;
    for (; a->told < a->at; a->told++)
        if (first[a->told].leads)
            propagate_item(run, a->iteration, &d->items[first[a->told].item], a->is_dead, ready);
}

static void propagate_region(struct run *run, struct activation *a, struct activation **ready)
{
    a->at = a->region->n; /* a dead one has not run */
    frame_propagate_items(run, a, ready);
    if (a->is_dead || a->region->lets_go)
        region_release(run, a);
}

void frame_propagate(struct run *run, struct activation *a, struct activation **ready)
{
    struct iteration *it = a->iteration;
    if (a->region)
        propagate_region(run, a, ready);
    else
        propagate_point(run, a, ready);
    it->outstanding--;
    if (it->frame->parent)
        check_iteration(run, it, ready);
}

const struct item *frame_find_waiting(const struct run *run)
{
    const struct dynamic *d = run->plan->dynamic;
    const struct iteration *it = run->root->oldest;
    const struct dynamic_frame *def = run->root->def;
    if (it->n_fired == def->n_heads)
        return NULL;
    for (size_t i = 0; i < def->items.n; i++) {
        int head = d->items[def->items.items[i]].head;
        if (!it->counters[d->items[head].local].fired)
            return &run->plan->items.items[head];
    }
    return NULL;
}

void frame_start_root(struct run *run, struct activation **ready)
{
    run->root = frame_new(run, 0, NULL, NULL);
    const struct dynamic_frame *def = run->root->def;
    struct iteration *it = iteration_new(run, run->root, 0);
    for (size_t i = 0; i < def->roots.n; i++) {
        int local = def->roots.items[i];
        if (it->activations[local].head->role == ROLE_MERGE)
            check_merge(run, it, local, ready);
        else
            check_plain(run, it, local, ready);
    }
}
