/* SPDX-License-Identifier: Apache-2.0
 *
 * Readiness: outputs and ends of items are delivered to the items that wait for them, and counted
 * there; loops get and end iterations. Everything here runs with run->lock held.
 */

#include "base/memory.h"
#include "exec/run/dynamic.h"

/* ---- readiness ---- */

static void schedule(struct run *run, struct iteration *it, int local, bool is_dead,
                     struct activation **ready)
{
    struct activation *a = &it->activations[local];
    it->counters[local].fired = true;
    a->is_dead = is_dead;
    a->n_locked = a->at = a->told = 0;
    if (is_dead ? a->passes_dead : a->is_empty && !run->step->trace) /* there is nothing to run */
        ready = &run->passing;
    a->next = *ready;
    *ready = a;
    it->n_fired++;
    it->outstanding++;
    run->active++;
}

/* A Merge runs with its first live input; it is dead when all inputs that can come are dead. A back
 * edge delivers nothing in iteration 0, and nothing else is delivered to its Merge later; a Merge
 * without a back edge, of a conditional in the body, is the same in every iteration. */
static inline void check(struct run *run, struct iteration *it, int local, bool is_merge,
                         struct activation **ready)
{
    const struct counter *c = &it->counters[local];
    if (c->pending > 0 || c->fired)
        return;
    if (!is_merge) {
        schedule(run, it, local, c->dead > 0 && it->activations[local].head->role != ROLE_TRIGGER,
                 ready);
        return;
    }
    const struct item *item = it->activations[local].head;
    int expected = it->number == 0 || !item->merge_next ? item->merge_first : item->merge_next;
    bool live = c->has_live || item->merge_ready;
    if (live || (int)c->dead >= expected)
        schedule(run, it, local, !live, ready);
}

static void keep_input(struct iteration *it, const struct out_edge *edge,
                       const struct tensor *value)
{
    struct token *input = &it->inputs[edge->place];
    if (value->buffer && !edge->gives)
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
        keep_input(it, edge, value);
        c->has_live = true;
    }
    check(run, it, edge->waits, true, ready);
}

static inline void deliver(struct run *run, struct iteration *it, const struct out_edge *edge,
                           const struct tensor *value, bool is_live, struct activation **ready)
{
    struct counter *c = &it->counters[edge->waits];
    if (edge->is_to_merge) {
        deliver_to_merge(run, it, edge, value, is_live, ready);
        return;
    }
    if (edge->input >= 0 && is_live)
        keep_input(it, edge, value);
    if (edge->input != EDGE_AFTER && !is_live)
        c->dead++;
    c->pending--;
    check(run, it, edge->waits, false, ready);
}

/* Sends a value of an item, and the fact that the item is over, into an iteration. */
static void send_value(struct run *run, struct iteration *to, int item, const struct token *value,
                       struct activation **ready)
{
    for (int slot = 0; slot >= -1; slot--)
        vec_each(edge, &run->plan->items.items[item].edges) {
            if (edge->slot == slot && edge->input != EDGE_AFTER)
                deliver(run, to, edge, slot < 0 ? NULL : &value->tensor, value->is_live, ready);
        }
}

/* ---- loops: their iterations, values between iterations, and the end ---- */

static void check_iteration(struct run *run, struct iteration *it, struct activation **ready);

static struct iteration *start_iteration(struct run *run, struct frame *frame, int64_t number,
                                         struct activation **ready)
{
    struct iteration *it = iteration_new(run, frame, number);
    it->outstanding++; /* held until everything that waits for it is delivered */
    for (size_t i = 0; i < frame->invariants.n; i++)
        send_value(run, it, frame->invariants.items[i].item, &frame->invariants.items[i].value,
                   ready);
    vec_each(d, &frame->deferred) {
        send_value(run, it, d->item, &d->value, ready);
        tensor_release(&d->value.tensor);
    }
    frame->deferred.n = 0;
    frame->starts = false;
    return it;
}

static struct deferral defer(int item, const struct token *value)
{
    struct deferral kept = {.item = item, .value.is_live = value->is_live};
    share_value(&kept.value.tensor, &value->tensor);
    return kept;
}

static void enter_frame(struct run *run, struct iteration *it, int item, const struct token *value,
                        struct activation **ready)
{
    const struct item *of = &run->plan->items.items[item];
    struct frame *frame = it->children;
    while (frame && frame->index != of->child_frame)
        frame = frame->next;
    if (!frame) {
        frame = frame_new(run, of->child_frame, it);
        frame->next = it->children;
        it->children = frame;
        start_iteration(run, frame, 0, ready)->outstanding--;
    }
    struct iteration *first = frame->oldest;
    first->outstanding++; /* the frame must not end during delivery */
    if (of->is_constant) {
        vec_push_in(&run->memory, &frame->invariants, defer(item, value));
        for (struct iteration *i = frame->oldest; i; i = i->next)
            send_value(run, i, item, value, ready);
    } else {
        send_value(run, first, item, value, ready);
    }
    frame->enters_left--;
    first->outstanding--;
    check_iteration(run, first, ready);
}

/* A dead value starts no iteration, but goes to one that exists: in an iteration everything runs or
 * is dead, on all devices that have a part of the loop. */
static void next_iteration(struct run *run, struct iteration *it, int item,
                           const struct token *value, struct activation **ready)
{
    struct frame *frame = it->frame;
    if (it->next) {
        send_value(run, it->next, item, value, ready);
    } else if (value->is_live &&
               it->number - frame->oldest->number + 1 < frame->def->parallel_iterations) {
        struct iteration *next = start_iteration(run, frame, it->number + 1, ready);
        send_value(run, next, item, value, ready);
        next->outstanding--;
    } else {
        vec_push_in(&run->memory, &frame->deferred, defer(item, value));
        frame->starts = frame->starts || value->is_live;
    }
}

static void leave_frame(struct run *run, struct iteration *it, int item, const struct token *value,
                        struct activation **ready)
{
    struct frame *frame = it->frame;
    if (!value->is_live)
        return; /* sent at the end of the frame, unless a later one is alive */
    for (size_t i = 0; i < frame->def->exits.n; i++)
        if (frame->def->exits.items[i] == item)
            frame->exited[i] = true;
    send_value(run, frame->parent, item, value, ready);
}

static void end_frame(struct run *run, struct frame *frame, struct activation **ready)
{
    struct iteration *parent = frame->parent;
    struct token dead = {.is_live = false};
    for (size_t i = 0; i < frame->def->exits.n; i++)
        if (!frame->exited[i])
            send_value(run, parent, frame->def->exits.items[i], &dead, ready);
    for (size_t i = 0; i < frame->def->over.n; i++)
        deliver(run, parent, &frame->def->over.items[i], NULL, false, ready);
    struct frame **at = &parent->children;
    while (*at != frame)
        at = &(*at)->next;
    *at = frame->next;
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
    while (frame->oldest == it && it->outstanding == 0 && !it->children &&
           frame->enters_left == 0) {
        int64_t number = frame->newest->number;
        frame->oldest = it->next;
        if (!frame->oldest)
            frame->newest = NULL;
        iteration_drop(run, it);
        if (frame->starts)
            start_iteration(run, frame, number + 1, ready)->outstanding--;
        struct iteration *next = frame->oldest;
        if (!next) {
            end_frame(run, frame, ready);
            return;
        }
        it = next;
    }
}

/* ---- ends of activations ---- */

static void propagate_edges(struct run *run, struct activation *a, const struct out_edge *edges,
                            int n, int first_output, struct activation **ready)
{
    struct iteration *it = a->iteration;
    struct tensor *outputs = &it->outputs[first_output];
    bool is_live = !a->is_dead;
    for (int e = 0; e < n; e++) {
        struct tensor *value = edges[e].slot < 0 ? NULL : &outputs[edges[e].slot];
        bool is_there = !value || edges[e].is_ref || value->type != DTYPE_INVALID;
        deliver(run, it, &edges[e], value, is_live && is_there, ready);
        if (edges[e].gives)
            value->buffer = NULL;
    }
}

/* An op that moves its value to another iteration first tells items that wait for it here. */
static void propagate_move(struct run *run, struct activation *a, struct activation **ready)
{
    struct token value = {a->iteration->outputs[a->first_output], !a->is_dead};
    for (int e = 0; e < a->n_edges; e++)
        if (a->edges[e].input == EDGE_AFTER)
            deliver(run, a->iteration, &a->edges[e], NULL, !a->is_dead, ready);
    if (a->head->role == ROLE_ENTER)
        enter_frame(run, a->iteration, a->item, &value, ready);
    else if (a->head->role == ROLE_NEXT)
        next_iteration(run, a->iteration, a->item, &value, ready);
    else
        leave_frame(run, a->iteration, a->item, &value, ready);
}

static void propagate_items(struct run *run, struct activation *a, struct activation **ready)
{
    const struct plan *plan = run->plan;
    for (; a->told < a->at; a->told++) {
        const struct region_item *at = &a->region->items[a->told];
        const struct item *item = &plan->items.items[at->item];
        if (at->leads)
            propagate_edges(run, a, item->edges.items, (int)item->edges.n, item->first_output,
                            ready);
    }
}

static void propagate(struct run *run, struct activation *a, struct activation **ready)
{
    struct iteration *it = a->iteration;
    if (a->is_empty && a->edges) {
        propagate_edges(run, a, a->edges, a->n_edges, a->first_output, ready);
    } else {
        a->at = a->region->n; /* a dead one has not run */
        if (item_moves(a->head))
            propagate_move(run, a, ready);
        else
            propagate_items(run, a, ready);
        if (a->is_dead || a->region->lets_go)
            region_release(run, a);
    }
    it->outstanding--;
    if (it->frame->parent)
        check_iteration(run, it, ready);
}

/* Ends activations that became ready with nothing to run, and those that become so by this. */
static void pass_on(struct run *run, struct activation **ready)
{
    for (struct activation *a; (a = run->passing);) {
        run->passing = a->next;
        propagate(run, a, ready);
        run->active--;
    }
}

void ready_propagate(struct run *run, struct activation *a, bool is_over, struct activation **ready)
{
    if (is_over)
        propagate(run, a, ready);
    else
        propagate_items(run, a, ready);
    pass_on(run, ready);
}

const struct item *ready_find_waiting(const struct run *run)
{
    const struct plan *plan = run->plan;
    const struct iteration *it = run->root->oldest;
    const struct plan_frame *def = run->root->def;
    for (size_t i = 0; it->n_fired < (int)def->heads.n; i++)
        if (!it->counters[i].fired)
            return &plan->items.items[def->heads.items[i]];
    return NULL;
}

void ready_start_root(struct run *run, struct activation **ready)
{
    if (run->plan->is_whole) { /* its iteration exists */
        run->root->oldest->n_fired = 0;
        if (run->plan->n_order)
            schedule(run, run->root->oldest, 0, false, ready);
        return;
    }
    run->root = frame_new(run, FRAME_ROOT, NULL);
    const struct plan_frame *def = run->root->def;
    struct iteration *it = iteration_new(run, run->root, 0);
    for (size_t i = 0; i < def->roots.n; i++) {
        int local = def->roots.items[i];
        check(run, it, local, it->activations[local].head->role == ROLE_MERGE, ready);
    }
    pass_on(run, ready);
}
