/* SPDX-License-Identifier: Apache-2.0
 *
 * What an iteration has for its regions: calls, made when the first of them runs, and kept with it;
 * arenas, which come from the plan's pool and go back when the iteration is over. Those of a whole
 * plan are its run's.
 */
#include "base/memory.h"
#include "exec/run/builtin.h"
#include "exec/run/dynamic.h"

static struct pool *pool_of(const struct plan *plan, bool on_device)
{
    bool is_host = plan->options.device->is_host;
    return on_device || is_host ? plan->pool : plan->host_pool;
}

static int take_arenas(const struct plan *plan, struct iteration *it, struct error *err)
{
    for (int i = 0; !plan->is_static && i < 2; i++) {
        size_t bytes = it->frame->def->arena_bytes[i];
        if (bytes && !it->arenas[i])
            it->arenas[i] = pool_alloc(pool_of(plan, i), bytes);
        if (bytes && !it->arenas[i])
            return error_set(err, ERR_OS, "no memory for the plan's %zu bytes%s", bytes,
                             mem_limit_text());
    }
    return 0;
}

/* An arena of no bytes is none. */
static void *at_offset(const struct iteration *it, bool on_device, int64_t offset)
{
    const struct buffer *arena = it->arenas[on_device];
    return arena ? (char *)arena->data + offset : NULL;
}

/* In a whole plan shapes are known of all values. */
static void place_outputs(const struct plan *plan, struct iteration *it, int id)
{
    const struct item *item = &plan->items.items[id];
    struct tensor *out = it->outputs + plan->dynamic->items[id].first_output;
    for (int i = 0; i < item->n_out; i++) {
        const struct value *value = &plan->values.items[item->out[i]];
        bool has_place = value->offset >= 0;
        if (has_place || plan->is_static)
            out[i] = (struct tensor){
                .type = value->type,
                .shape = value->shape,
                .layout = value->layout,
                .data = has_place ? at_offset(it, value->on_device, value->offset) : NULL};
    }
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
    default:
        return iteration_output(run->plan, it, v);
    }
}

struct tensor *iteration_input(struct run *run, struct iteration *it, int id, int i)
{
    const struct plan *plan = run->plan;
    const struct dynamic_item *di = &plan->dynamic->items[id];
    const struct item *item = &plan->items.items[id];
    const struct value *value = &plan->values.items[item->in[i]];
    bool is_ref = item->refs && item->refs[i], is_seen = item->seen && item->seen[i];
    bool is_there = plan->is_static || value->kind == VALUE_FEED || region_sees_constant(value) ||
                    region_has_made(plan, item->in[i], di->region);
    if (!is_ref && (is_seen || !is_there))
        return &it->inputs[di->first_input + i].tensor;
    return iteration_value(run, it, item->in[i]);
}

static struct plain_call plain_call_of(const struct plan *plan, const struct region_item *at,
                                       struct region_call *c)
{
    const struct item *item = c->host.item;
    bool is_plain = !at->gathers && !at->looks && !at->is_relieved && !at->n_drops && !at->locks &&
                    item->flow == FLOW_ALWAYS && !item->is_prepared &&
                    !plan->options.check_numerics;
    return (struct plain_call){is_plain ? item_kernel(item) : NULL, &c->call};
}

static void make_calls(struct run *run, struct iteration *it)
{
    const struct plan *plan = run->plan;
    const struct dynamic_frame *def = it->frame->def;
    it->calls = mem_array(def->order.n + 1, sizeof *it->calls);
    it->plain = mem_array(def->order.n + 1, sizeof *it->plain);
    if (plan->has_branches)
        it->dead = mem_array(plan->values.n + plan->items.n, sizeof *it->dead);
    for (size_t at = 0; at < def->order.n; at++) {
        struct region_call *c = &it->calls[at];
        int id = def->order.items[at].item;
        struct tensor **in = kernel_make_call(run, it, id, &c->host, &c->call);
        for (int i = 0; i < c->call.n_in; i++)
            in[i] = iteration_input(run, it, id, i);
        it->plain[at] = plain_call_of(plan, &def->order.items[at], c);
    }
}

/* What depends on where the arenas are. */
static void place(const struct plan *plan, struct iteration *it)
{
    const struct dynamic_frame *def = it->frame->def;
    bool on_device = !plan->options.device->is_host;
    for (size_t at = 0; at < def->order.n; at++) {
        int id = def->order.items[at].item;
        const struct item *item = &plan->items.items[id];
        place_outputs(plan, it, id);
        if (item->scratch_bytes)
            it->calls[at].call.scratch = at_offset(it, on_device, item->scratch_offset);
    }
    for (int i = 0; i < 2; i++)
        it->placed[i] = it->arenas[i] ? it->arenas[i]->data : NULL;
}

static bool has_moved(const struct iteration *it)
{
    for (int i = 0; i < 2; i++)
        if (it->placed[i] != (it->arenas[i] ? it->arenas[i]->data : NULL))
            return true;
    return false;
}

int region_open(struct run *run, struct iteration *it, struct error *err)
{
    int code = 0;
    if (atomic_load_explicit(&it->is_open, memory_order_acquire))
        return 0;
    pthread_mutex_lock(&run->lock);
    if (!it->is_open && !(code = take_arenas(run->plan, it, err))) {
        bool is_new = !it->calls;
        if (is_new)
            make_calls(run, it);
        if (is_new || has_moved(it))
            place(run->plan, it);
        it->is_open = true;
    }
    pthread_mutex_unlock(&run->lock);
    return code;
}

void region_close(struct iteration *it)
{
    for (int i = 0; i < 2; i++) {
        if (it->arenas[i])
            it->arenas[i]->free(it->arenas[i]);
        it->arenas[i] = NULL;
    }
    it->is_open = false;
}

void region_free(struct iteration *it)
{
    region_close(it);
    mem_free(it->calls);
    mem_free(it->plain);
    mem_free(it->dead);
}
