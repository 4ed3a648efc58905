/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames and iterations of a running step: which iterations exist, what goes from one to another,
 * when a loop is over. Everything here runs with run->lock held.
 */
#include <string.h>

#include "base/memory.h"
#include "exec/run/dynamic.h"

/* ---- loops ---- */

static struct iteration *start_iteration(struct run *run, struct frame *frame, int64_t number,
                                         struct activation **ready)
{
    struct iteration *it = iteration_new(run, frame, number);
    it->outstanding++; /* held until everything that waits for it was delivered */
    for (size_t i = 0; i < frame->invariants.n; i++)
        ready_send(run, it, frame->invariants.items[i].item, &frame->invariants.items[i].value,
                   ready);
    vec_each(d, &frame->deferred) {
        ready_send(run, it, d->item, &d->value, ready);
        tensor_release(&d->value.tensor);
    }
    frame->deferred.n = 0;
    frame->starts = false;
    return it;
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
    start_iteration(run, frame, 0, ready)->outstanding--;
    return frame;
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
    struct frame *frame = find_child(run, it, of->child_frame, ready);
    struct iteration *first = frame->oldest;
    first->outstanding++; /* the frame must not end while we deliver */
    if (of->is_constant) {
        vec_push(&frame->invariants, defer(item, value));
        for (struct iteration *i = frame->oldest; i; i = i->next)
            ready_send(run, i, item, value, ready);
    } else {
        ready_send(run, first, item, value, ready);
    }
    frame->enters_left--;
    first->outstanding--;
    frame_check_iteration(run, first, ready);
}

/* A dead value starts no iteration, but if there is one it comes there, too: in an iteration
 * everything runs or is dead, on all devices that have a part of the loop. */
static void next_iteration(struct run *run, struct iteration *it, int item,
                           const struct token *value, struct activation **ready)
{
    struct frame *frame = it->frame;
    if (it->next) {
        ready_send(run, it->next, item, value, ready);
    } else if (value->is_live &&
               it->number - frame->oldest->number + 1 < frame->def->parallel_iterations) {
        struct iteration *next = start_iteration(run, frame, it->number + 1, ready);
        ready_send(run, next, item, value, ready);
        next->outstanding--;
    } else {
        vec_push(&frame->deferred, defer(item, value));
        frame->starts = frame->starts || value->is_live;
    }
}

static void leave_frame(struct run *run, struct iteration *it, int item, const struct token *value,
                        struct activation **ready)
{
    struct frame *frame = it->frame;
    if (!value->is_live)
        return; /* told when the frame is over, unless a later iteration leaves alive */
    for (size_t i = 0; i < frame->def->exits.n; i++)
        if (frame->def->exits.items[i] == item)
            frame->exited[i] = true;
    ready_send(run, frame->parent_iteration, item, value, ready);
}

static void end_frame(struct run *run, struct frame *frame, struct activation **ready)
{
    struct iteration *parent = frame->parent_iteration;
    struct token dead = {.is_live = false};
    for (size_t i = 0; i < frame->def->exits.n; i++)
        if (!frame->exited[i])
            ready_send(run, parent, frame->def->exits.items[i], &dead, ready);
    for (size_t i = 0; i < frame->def->over.n; i++)
        ready_deliver(run, parent, &frame->def->over.items[i], NULL, false, ready);
    struct frame **at = &parent->children;
    while (*at != frame)
        at = &(*at)->next;
    *at = frame->next;
    frame_drop(run, frame);
    frame_check_iteration(run, parent, ready);
}

/* Iterations end in order: one is over when nothing runs in it, nothing can arrive any more and the
 * one before is gone. */
void frame_check_iteration(struct run *run, struct iteration *it, struct activation **ready)
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

void frame_move(struct run *run, struct activation *a, const struct token *value,
                struct activation **ready)
{
    switch (a->head->role) {
    case ROLE_ENTER:
        enter_frame(run, a->iteration, a->item, value, ready);
        break;
    case ROLE_NEXT:
        next_iteration(run, a->iteration, a->item, value, ready);
        break;
    default:
        leave_frame(run, a->iteration, a->item, value, ready);
    }
}
