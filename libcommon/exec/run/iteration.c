/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of frames and iterations, which is kept from step to step and used again. An iteration
 * keeps calls for its regions, made when the first of them runs, and has arenas, which come from
 * the plan's pool and go back when the iteration is over, unless they are borrowed.
 */
#include <string.h>

#include "base/memory.h"
#include "exec/run/dynamic.h"
#include "exec/run/item.h"

/* ---- calls and arenas ---- */

/* Returns NULL if the arena has no bytes. */
static void *at_offset(const struct iteration *it, bool on_device, int64_t offset)
{
    const struct buffer *arena = it->arenas[on_device];
    return arena ? (char *)arena->data + offset : NULL;
}

struct tensor *iteration_value(struct run *run, struct iteration *it, int v)
{
    struct value *value = &run->plan->values.items[v];
    switch (value->kind) {
    case VALUE_VARIABLE:
        return &value->variable->value;
    case VALUE_CONSTANT:
        return &value->constant;
    case VALUE_FEED:
        return &run->feeds[value->feed];
    case VALUE_CARRIED:
        return &it->carried[value->feed];
    default:
        return iteration_output(run->plan, it, v);
    }
}

struct tensor *iteration_input(struct run *run, struct iteration *it, int id, int i)
{
    const struct plan *plan = run->plan;
    const struct item *item = &plan->items.items[id];
    bool is_ref = item->refs && item->refs[i], is_seen = item_sees(item, i) >= 0;
    bool is_there = it->frame->def->has_order || region_has_input(plan, item, i);
    if (!is_ref && (is_seen || !is_there))
        return &it->inputs[item->first_input + i].tensor;
    return iteration_value(run, it, item->in[i]);
}

void iteration_drop_inputs(const struct plan *plan, struct iteration *it, int id)
{
    const struct item *item = &plan->items.items[id];
    struct token *inputs = it->inputs + item->first_input;
    for (int i = 0; i < item->n_in; i++) {
        if (inputs[i].tensor.buffer)
            tensor_release(&inputs[i].tensor);
        inputs[i].is_live = false;
    }
}

/* Runs a kernel of which the plan knew all shapes, where inputs may have others: a variable's value
 * may differ from what was declared, and nothing checks an alias without a fixed order. */
static int run_checked(struct kernel_call *call)
{
    const struct call_host *host = call_host(call);
    bool known = true;
    for (int i = 0; i < call->n_in && known; i++) {
        const struct node_output *from = graph_output(host->plan->graph, call->node->inputs[i]);
        known = call->in[i] && shape_equal(&call->in[i]->shape, &from->shape);
    }
    call->shapes_known = known;
    return item_kernel(host->item)(call);
}

/* Sets the members that are the same in every step. */
static void make_call(struct run *run, struct iteration *it, int at)
{
    struct plan *plan = run->plan;
    const struct region_item *place = &it->frame->def->order.items[at];
    const struct item *item = &plan->items.items[place->item];
    struct tensor **in = it->pointers + item->first_input + item->first_output;
    struct region_call *c = &it->calls[at];
    bool has_order = it->frame->def->has_order;
    bool is_plain = !place->gathers && !place->looks && !place->is_relieved && !place->drops &&
                    !place->locks && item->flow == FLOW_ALWAYS && !item->is_prepared &&
                    !plan->regions.items[item->region].is_point && !plan->options.check_numerics;
    bool may_differ = !has_order;
    for (int i = 0; i < item->n_in; i++) {
        in[i] = iteration_input(run, it, place->item, i);
        may_differ |= plan->values.items[item->in[i]].kind == VALUE_VARIABLE;
    }
    for (int i = 0; i < item->n_out; i++)
        in[item->n_in + i] = &it->outputs[item->first_output + i];
    c->host = (struct call_host){.planned = has_order,
                                 .fetches = run->fetches,
                                 .plan = plan,
                                 .item = item,
                                 .iteration = it,
                                 .kept = it->kept ? it->kept + item->first_output : NULL,
                                 .pool = plan->pools[!plan->options.device->is_host],
                                 .on_device = &run->on_device,
                                 .executor.done = run_async_done};
    c->call = item_call(&c->host, in);
    c->run = item->node && item->shapes_known && may_differ ? run_checked : item_kernel(item);
    c->call.step_block = device_step_block(&run->on_device);
    c->call.item = plan->faults.first + (uint32_t)place->item;
    it->plain[at] = (struct plain_call){is_plain ? c->run : NULL, &c->call};
}

/* Sets addresses that depend on the arenas. In a fixed order the shapes of all values are known. */
static void place_outputs(const struct plan *plan, struct iteration *it, int at)
{
    const struct plan_frame *def = it->frame->def;
    const struct item *item = &plan->items.items[def->order.items[at].item];
    for (int i = 0; i < item->n_out; i++) {
        const struct value *value = &plan->values.items[item->out[i]];
        bool has_place = value->offset >= 0;
        if (has_place || def->has_order)
            it->outputs[item->first_output + i] = (struct tensor){
                .type = value->type,
                .shape = value->shape,
                .layout = value->layout,
                .data = has_place ? at_offset(it, value->on_device, value->offset) : NULL};
    }
    if (item->scratch_bytes)
        it->calls[at].call.scratch =
            at_offset(it, !plan->options.device->is_host, item->scratch_offset);
}

/* With run->lock held. */
static int open_region(struct run *run, struct iteration *it, struct error *err)
{
    const struct plan *plan = run->plan;
    const struct plan_frame *def = it->frame->def;
    int n = (int)def->order.n;
    bool is_new = !it->calls, is_moved = is_new;
    for (int i = 0; i < 2; i++) {
        size_t bytes = def->borrows ? 0 : def->arena_bytes[i];
        if (bytes && !it->arenas[i] && !(it->arenas[i] = pool_alloc(plan->pools[i], bytes))) {
            it->placed[0] = NULL; /* nothing has been placed there */
            return error_set(err, ERR_OS, "no memory for the plan's %zu bytes%s", bytes,
                             mem_limit_text());
        }
        void *memory = it->arenas[i] ? it->arenas[i]->data : NULL;
        is_moved |= it->placed[i] != memory;
        it->placed[i] = memory;
    }
    if (is_new) {
        it->calls = arena_array(&run->memory, (size_t)n + 1, sizeof *it->calls);
        it->plain = arena_array(&run->memory, (size_t)n + 1, sizeof *it->plain);
    } else if (is_moved && it->frame == run->root) {
        captured_forget(run);
    }
    for (int at = 0; at < n && is_new; at++)
        make_call(run, it, at);
    for (int at = 0; at < n && is_moved; at++)
        place_outputs(plan, it, at);
    it->is_open = true;
    return 0;
}

int region_open(struct run *run, struct iteration *it, struct error *err)
{
    if (atomic_load_explicit(&it->is_open, memory_order_acquire))
        return 0;
    pthread_mutex_lock(&run->lock);
    int code = it->is_open ? 0 : open_region(run, it, err);
    pthread_mutex_unlock(&run->lock);
    return code;
}

void iteration_clear(const struct plan *plan, struct iteration *it)
{
    const struct plan_frame *def = it->frame->def;
    for (size_t i = 0; i < def->counted.n; i++) {
        struct tensor *t = iteration_output(plan, it, def->counted.items[i]), counted = *t;
        t->buffer = NULL;
        tensor_release(&counted);
    }
}

/* Drops the arenas. */
static void region_close(struct iteration *it)
{
    for (int i = 0; i < 2; i++) {
        if (it->arenas[i] && !it->frame->def->borrows)
            it->arenas[i]->free(it->arenas[i]);
        it->arenas[i] = NULL;
    }
    it->is_open = false;
}

/* ---- iterations and frames: with run->lock held, or when nothing of the step runs ---- */

static struct iteration *iteration_alloc(struct run *run, int index)
{
    const struct plan *plan = run->plan;
    const struct plan_frame *def = &plan->frames.items[index];
    struct arena *memory = &run->memory;
    size_t n_heads = def->heads.n, n_in = (size_t)def->n_inputs, n_out = (size_t)def->n_outputs;
    struct iteration *it = arena_alloc(memory, sizeof *it);
    it->activations = arena_array(memory, n_heads + 1, sizeof *it->activations); /* 0: no items */
    it->counters = arena_array(memory, n_heads, sizeof *it->counters);
    it->inputs = arena_array(memory, n_in, sizeof *it->inputs);
    it->outputs = arena_array(memory, n_out, sizeof *it->outputs);
    it->pointers = arena_array(memory, n_in + n_out, sizeof *it->pointers);
    if (index == FRAME_ROOT && plan->segments.n && !def->has_order)
        it->kept = arena_array(memory, n_out, sizeof *it->kept);
    for (size_t i = 0; i < n_heads; i++) {
        const struct item *head = &plan->items.items[def->heads.items[i]];
        struct activation *a = &it->activations[i];
        a->run = run;
        a->iteration = it;
        a->head = head;
        a->region = &plan->regions.items[head->region];
        a->item = def->heads.items[i];
        a->is_cheap = a->region->is_cheap;
        a->is_empty = a->region->is_empty;
        a->passes_dead = !a->region->is_point && !a->region->fetches;
        a->edges = a->region->n > 1 ? NULL : head->edges.items;
        a->n_edges = (int)head->edges.n;
        a->first_output = head->first_output;
    }
    return it;
}

void iteration_place(struct run *run, struct iteration *it)
{
    for (int i = 0; i < 2; i++) {
        it->arenas[i] = run->arenas[i] ? run->arenas[i]->buffer : NULL;
        it->is_open = it->is_open && (!it->arenas[i] || it->arenas[i]->data == it->placed[i]);
    }
}

struct iteration *iteration_new(struct run *run, struct frame *frame, int64_t number)
{
    struct iteration *it = run->idle[frame->index].iterations;
    if (it)
        run->idle[frame->index].iterations = it->next;
    else
        it = iteration_alloc(run, frame->index);
    it->frame = frame;
    it->number = number;
    it->tag = !frame->parent ? 0 : while_iteration(frame->parent->tag, frame->def->key, number);
    it->outstanding = it->n_fired = 0;
    it->children = NULL;
    it->next = NULL;
    if (frame->index == FRAME_ROOT)
        iteration_place(run, it);
    if (frame->def->heads.n)
        memcpy(it->counters, frame->def->waits, frame->def->heads.n * sizeof *it->counters);
    if (frame->newest)
        frame->newest->next = it;
    else
        frame->oldest = it;
    frame->newest = it;
    return it;
}

void iteration_drop_outputs(const struct plan *plan, struct iteration *it, int id)
{
    const struct item *item = &plan->items.items[id];
    for (int i = 0; i < item->n_out; i++)
        if (plan->values.items[item->out[i]].offset < 0)
            tensor_release(&it->outputs[item->first_output + i]);
}

void iteration_drop(struct run *run, struct iteration *it)
{
    const struct plan_frame *def = it->frame->def;
    bool is_left = it->outstanding || it->n_fired < (int)def->heads.n; /* some did not end */
    for (int i = 0; is_left && i < def->n_inputs; i++) {
        tensor_release(&it->inputs[i].tensor);
        it->inputs[i].is_live = false;
    }
    for (size_t at = 0; is_left && at < def->order.n; at++)
        iteration_drop_outputs(run->plan, it, def->order.items[at].item);
    region_close(it);
    it->next = run->idle[it->frame->index].iterations;
    run->idle[it->frame->index].iterations = it;
}

struct frame *frame_new(struct run *run, int index, struct iteration *parent)
{
    const struct plan_frame *def = &run->plan->frames.items[index];
    struct frame *frame = run->idle[index].frames;
    if (frame) {
        run->idle[index].frames = frame->next;
    } else {
        frame = arena_alloc(&run->memory, sizeof *frame);
        frame->exited = arena_array(&run->memory, def->exits.n, sizeof *frame->exited);
    }
    frame->def = def;
    frame->index = index;
    frame->parent = parent;
    frame->oldest = frame->newest = NULL;
    frame->enters_left = def->n_entered;
    memset(frame->exited, 0, def->exits.n);
    frame->next = NULL;
    return frame;
}

void frame_drop(struct run *run, struct frame *frame)
{
    vec_each(deferral, &frame->deferred) {
        tensor_release(&deferral->value.tensor);
    }
    vec_each(deferral, &frame->invariants) {
        tensor_release(&deferral->value.tensor);
    }
    frame->deferred.n = frame->invariants.n = 0;
    frame->starts = false;
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
    frame->next = run->idle[frame->index].frames;
    run->idle[frame->index].frames = frame;
}

void frame_clear(struct run *run)
{
    if (run->root)
        frame_drop(run, run->root);
    run->root = NULL;
}

void iterations_release(struct run *run)
{
    for (size_t i = 0; i < run->plan->frames.n; i++) {
        const struct plan_frame *def = &run->plan->frames.items[i];
        for (struct iteration *it = run->idle[i].iterations; it; it = it->next) {
            for (int k = 0; it->kept && k < def->n_outputs; k++)
                tensor_release(&it->kept[k]);
            for (size_t k = 0; k < def->heads.n; k++) {
                if (it->activations[k].launch)
                    vec_release(&it->activations[k].launch->temporaries);
                mem_free(it->activations[k].launch);
            }
            region_close(it);
        }
    }
}
