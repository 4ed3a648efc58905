/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of frames and iterations, which is kept from step to step and used again. Everything
 * here runs with run->lock held, or when nothing of the step runs.
 */
#include <string.h>

#include "base/memory.h"
#include "exec/plan/plan_while.h"
#include "exec/run/dynamic.h"

static void make_activations(struct run *run, struct iteration *it, const struct dynamic_frame *def)
{
    const struct dynamic *d = run->plan->dynamic;
    it->activations = mem_array((size_t)def->n_items + 1, sizeof *it->activations);
    for (size_t i = 0; i < def->items.n; i++) {
        const struct dynamic_item *head = &d->items[def->items.items[i]];
        struct activation *a = &it->activations[head->local];
        a->run = run;
        a->iteration = it;
        a->head = head;
        a->region = head->region < 0 ? NULL : &d->regions.items[head->region];
        a->item = def->items.items[i];
        a->is_cheap = a->region ? a->region->is_cheap : head->is_cheap;
        a->is_empty = a->region && a->region->is_empty;
        a->passes_dead = a->region && !a->region->fetches;
        a->edges = a->region && a->region->n > 1 ? NULL : d->edges + head->first_edge;
        a->n_edges = head->n_edges;
        a->first_output = head->first_output;
    }
}

static struct iteration *iteration_alloc(struct run *run, int index)
{
    const struct dynamic_frame *def = &run->plan->dynamic->frames.items[index];
    struct iteration *it = mem_alloc(sizeof *it);
    it->counters = mem_array((size_t)def->n_items + 1, sizeof *it->counters);
    it->inputs = mem_array((size_t)def->n_inputs + 1, sizeof *it->inputs);
    it->outputs = mem_array((size_t)def->n_outputs + 1, sizeof *it->outputs);
    it->pointers = mem_array((size_t)(def->n_inputs + def->n_outputs) + 1, sizeof *it->pointers);
    it->out_refs = mem_array((size_t)def->n_outputs + 1, sizeof *it->out_refs);
    make_activations(run, it, def);
    return it;
}

static void iteration_free(struct iteration *it, int n_items)
{
    for (int i = 0; i < n_items; i++) {
        if (it->activations[i].launch)
            vec_release(&it->activations[i].launch->temporaries);
        mem_free(it->activations[i].launch);
    }
    region_free(it);
    mem_free(it->counters);
    mem_free(it->inputs);
    mem_free(it->outputs);
    mem_free(it->pointers);
    mem_free(it->out_refs);
    mem_free(it->activations);
    mem_free(it);
}

static uint64_t next_tag(const struct frame *frame, int64_t number)
{
    return frame->parent ? while_iteration(frame->parent_iteration->tag, frame->def->key, number)
                         : 0;
}

struct iteration *iteration_new(struct run *run, struct frame *frame, int64_t number)
{
    struct iteration *it = run->idle_iterations[frame->index];
    if (it)
        run->idle_iterations[frame->index] = it->next;
    else
        it = iteration_alloc(run, frame->index);
    it->frame = frame;
    it->number = number;
    it->tag = next_tag(frame, number);
    it->outstanding = it->n_fired = it->n_children = 0;
    it->children = NULL;
    it->next = NULL;
    memcpy(it->counters, frame->def->waits, frame->def->items.n * sizeof *it->counters);
    if (frame->newest)
        frame->newest->next = it;
    else
        frame->oldest = it;
    frame->newest = it;
    frame->n_live++;
    return it;
}

/* Lets go of what is left where not all was over. */
static void drop_values(struct iteration *it)
{
    const struct dynamic_frame *def = it->frame->def;
    for (int i = 0; i < def->n_inputs; i++) {
        tensor_release(&it->inputs[i].tensor);
        it->inputs[i].is_live = false;
    }
    for (int i = 0; i < def->n_outputs; i++)
        if (!def->is_placed[i])
            tensor_release(&it->outputs[i]);
}

void iteration_drop(struct run *run, struct iteration *it)
{
    if (run->failed || it->n_fired < it->frame->def->n_heads)
        drop_values(it);
    region_close(it);
    it->next = run->idle_iterations[it->frame->index];
    run->idle_iterations[it->frame->index] = it;
}

struct frame *frame_new(struct run *run, int index, struct frame *parent,
                        struct iteration *parent_iteration)
{
    const struct dynamic_frame *def = &run->plan->dynamic->frames.items[index];
    struct frame *frame = run->idle_frames[index];
    if (frame) {
        run->idle_frames[index] = frame->next;
    } else {
        frame = mem_alloc(sizeof *frame);
        frame->exited = mem_alloc(def->exits.n + 1);
    }
    frame->def = def;
    frame->index = index;
    frame->parent = parent;
    frame->parent_iteration = parent_iteration;
    frame->oldest = frame->newest = NULL;
    frame->n_live = 0;
    frame->enters_left = def->n_enters;
    memset(frame->exited, 0, def->exits.n);
    frame->next = NULL;
    return frame;
}

static void drop_carried(struct frame *frame)
{
    for (size_t i = 0; i < frame->deferred.n; i++)
        tensor_release(&frame->deferred.items[i].value.tensor);
    for (size_t i = 0; i < frame->invariants.n; i++)
        tensor_release(&frame->invariants.items[i].value.tensor);
    frame->deferred.n = frame->invariants.n = 0;
    frame->starts = false;
}

void frame_drop(struct run *run, struct frame *frame)
{
    drop_carried(frame);
    while (frame->oldest) {
        struct iteration *it = frame->oldest;
        frame->oldest = it->next;
        while (it->children) {
            struct frame *child = it->children;
            it->children = child->next;
            frame_drop(run, child);
        }
        iteration_drop(run, it);
    }
    frame->next = run->idle_frames[frame->index];
    run->idle_frames[frame->index] = frame;
}

void frame_clear(struct run *run)
{
    if (run->root)
        frame_drop(run, run->root);
    run->root = NULL;
}

void frame_free_idle(struct run *run)
{
    for (size_t i = 0; i < run->plan->dynamic->frames.n; i++) {
        for (struct iteration *it = run->idle_iterations[i], *next; it; it = next) {
            next = it->next;
            iteration_free(it, run->plan->dynamic->frames.items[i].n_items);
        }
        for (struct frame *f = run->idle_frames[i], *next; f; f = next) {
            next = f->next;
            vec_release(&f->deferred);
            vec_release(&f->invariants);
            mem_free(f->exited);
            mem_free(f);
        }
    }
}
