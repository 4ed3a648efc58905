/* SPDX-License-Identifier: Apache-2.0
 *
 * What an iteration has for its regions: calls, made when the first of them runs, and kept with it;
 * arenas, which come from the plan's pool and go back when the iteration is over.
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
    for (int i = 0; i < 2; i++) {
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

static void place_outputs(const struct plan *plan, struct iteration *it, int id)
{
    const struct item *item = &plan->items.items[id];
    struct tensor *out = it->outputs + plan->dynamic->items[id].first_output;
    for (int i = 0; i < item->n_out; i++) {
        const struct value *value = &plan->values.items[item->out[i]];
        if (value->offset >= 0)
            out[i] = (struct tensor){.type = value->type,
                                     .shape = value->shape,
                                     .layout = value->layout,
                                     .data = at_offset(it, value->on_device, value->offset)};
    }
}

static struct tensor *input_of(const struct plan *plan, struct iteration *it, int id, int i)
{
    const struct dynamic *d = plan->dynamic;
    const struct item *item = &plan->items.items[id];
    struct value *value = &plan->values.items[item->in[i]];
    if (item->refs && item->refs[i])
        return &value->variable->value;
    if (region_sees_constant(value))
        return &value->constant;
    bool is_own = !region_has_made(plan, item->in[i], d->items[id].region);
    if (is_own || (item->seen && item->seen[i]))
        return &it->inputs[d->items[id].first_input + i].tensor;
    int slot = item->in[i] - plan->items.items[value->item].out[0];
    return &it->outputs[d->items[value->item].first_output + slot];
}

static void make_call(struct run *run, struct iteration *it, int id, struct region_call *c)
{
    struct plan *plan = run->plan;
    const struct item *item = &plan->items.items[id];
    struct tensor **in = kernel_make_call(run, it, id, &c->host, &c->call);
    for (int i = 0; i < item->n_in; i++)
        in[i] = input_of(plan, it, id, i);
}

static struct plain_call plain_call_of(const struct plan *plan, const struct region_item *at,
                                       struct region_call *c)
{
    const struct item *item = c->host.item;
    bool is_plain = !at->gathers && !at->is_relieved && !at->n_drops && !at->locks &&
                    !item->is_prepared && !plan->options.check_numerics;
    return (struct plain_call){is_plain ? item_kernel(item) : NULL, &c->call};
}

static void make_calls(struct run *run, struct iteration *it)
{
    const struct dynamic_frame *def = it->frame->def;
    it->calls = mem_array(def->order.n + 1, sizeof *it->calls);
    it->plain = mem_array(def->order.n + 1, sizeof *it->plain);
    for (size_t at = 0; at < def->order.n; at++) {
        make_call(run, it, def->order.items[at].item, &it->calls[at]);
        it->plain[at] = plain_call_of(run->plan, &def->order.items[at], &it->calls[at]);
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
}
