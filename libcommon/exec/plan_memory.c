/* SPDX-License-Identifier: Apache-2.0
 *
 * Where values live. In a fixed order each value is needed from its producer to its last consumer;
 * values whose times do not overlap share addresses. Aliases share by definition; an output may
 * take over an input that ends with it, where the kernel allows. Offsets are given in one sweep
 * over the order, best fit first.
 */
#include <string.h>

#include "base/memory.h"
#include "exec/plan_internal.h"

struct storage {
    size_t bytes;
    int from, to; /* positions in the order */
    int64_t offset;
};

struct hole {
    int64_t offset, bytes;
};

struct place {
    struct plan *plan;
    int *position;   /* by item */
    int *storage_of; /* by value; -1 */
    VEC(struct storage) storages;
    VEC(struct hole) holes; /* by offset, never adjacent */
    int64_t end;            /* of the arena so far */
};

static size_t value_bytes(const struct plan *plan, const struct value *value)
{
    if (value->layout)
        return plan->options.device->layout_bytes(value->layout);
    int64_t bytes = shape_bytes(&value->shape, value->type);
    return bytes < 0 ? 0 : (size_t)bytes;
}

/* First and last position of each value, those of aliases counted in. */
static void find_lifetimes(struct place *p)
{
    struct plan *plan = p->plan;
    for (int at = 0; at < plan->n_order; at++) {
        const struct item *item = &plan->items.items[plan->order[at]];
        p->position[plan->order[at]] = at;
        for (int k = 0; k < item->n_out; k++)
            plan->values.items[item->out[k]].live_from = plan->values.items[item->out[k]].live_to =
                at;
        for (int k = 0; k < item->n_in; k++)
            plan->values.items[item->in[k]].live_to = at;
    }
    for (int at = plan->n_order - 1; at >= 0; at--) {
        const struct item *item = &plan->items.items[plan->order[at]];
        for (int k = 0; k < item->n_out; k++) {
            const struct value *value = &plan->values.items[item->out[k]];
            if (value->alias_of >= 0 &&
                plan->values.items[value->alias_of].live_to < value->live_to)
                plan->values.items[value->alias_of].live_to = value->live_to;
        }
    }
}

static bool can_take_over(const struct place *p, const struct item *item, int at,
                          const struct value *output, int *storage)
{
    if (item->output_forward != FORWARD_REUSE || output->item < 0)
        return false;
    int root = plan_root_value(p->plan, item->in[item->output_from]);
    for (int k = 0; k < item->n_in; k++) /* another input that is the same memory is still read */
        if (k != item->output_from && item->in[k] >= 0 &&
            plan_root_value(p->plan, item->in[k]) == root)
            return false;
    const struct value *input = &p->plan->values.items[root];
    *storage = p->storage_of[root];
    return input->kind == VALUE_COMPUTED && *storage >= 0 && input->live_to == at &&
           p->storages.items[*storage].to == at &&
           p->storages.items[*storage].bytes == ALIGN_UP(value_bytes(p->plan, output));
}

static void assign_storage(struct place *p, int at)
{
    struct plan *plan = p->plan;
    const struct item *item = &plan->items.items[plan->order[at]];
    for (int k = 0; k < item->n_out; k++) {
        struct value *value = &plan->values.items[item->out[k]];
        int storage;
        if (value->kind != VALUE_COMPUTED || value->alias_of >= 0)
            continue;
        value->bytes = value_bytes(plan, value);
        if (k == 0 && can_take_over(p, item, at, value, &storage)) {
            p->storage_of[item->out[k]] = storage;
            p->storages.items[storage].to = value->live_to;
            continue;
        }
        struct storage fresh = {ALIGN_UP(value->bytes), at, value->live_to, -1};
        p->storage_of[item->out[k]] = (int)p->storages.n;
        vec_push(&p->storages, fresh);
    }
}

/* ---- offsets ---- */

static int64_t allocate(struct place *p, size_t bytes)
{
    size_t best = p->holes.n;
    for (size_t i = 0; i < p->holes.n; i++)
        if (p->holes.items[i].bytes >= (int64_t)bytes &&
            (best == p->holes.n || p->holes.items[i].bytes < p->holes.items[best].bytes))
            best = i;
    if (best == p->holes.n) {
        int64_t offset = p->end;
        if (p->holes.n &&
            p->holes.items[p->holes.n - 1].offset + p->holes.items[p->holes.n - 1].bytes == p->end)
            offset = p->holes.items[--p->holes.n].offset; /* grow the last hole */
        if (__builtin_add_overflow(offset, (int64_t)bytes, &p->end))
            p->end = INT64_MAX; /* no device has that much */
        return offset;
    }
    struct hole *hole = &p->holes.items[best];
    int64_t offset = hole->offset;
    hole->offset += (int64_t)bytes;
    hole->bytes -= (int64_t)bytes;
    if (!hole->bytes) {
        memmove(hole, hole + 1, (p->holes.n - best - 1) * sizeof *hole);
        p->holes.n--;
    }
    return offset;
}

static void give_back(struct place *p, int64_t offset, size_t bytes)
{
    if (!bytes)
        return;
    size_t at = 0;
    while (at < p->holes.n && p->holes.items[at].offset < offset)
        at++;
    struct hole hole = {offset, (int64_t)bytes};
    vec_push(&p->holes, hole);
    memmove(p->holes.items + at + 1, p->holes.items + at, (p->holes.n - 1 - at) * sizeof hole);
    p->holes.items[at] = hole;
    if (at + 1 < p->holes.n && offset + hole.bytes == p->holes.items[at + 1].offset) {
        p->holes.items[at].bytes += p->holes.items[at + 1].bytes;
        memmove(p->holes.items + at + 1, p->holes.items + at + 2,
                (p->holes.n - at - 2) * sizeof hole);
        p->holes.n--;
    }
    if (at > 0 && p->holes.items[at - 1].offset + p->holes.items[at - 1].bytes == offset) {
        p->holes.items[at - 1].bytes += p->holes.items[at].bytes;
        memmove(p->holes.items + at, p->holes.items + at + 1, (p->holes.n - at - 1) * sizeof hole);
        p->holes.n--;
    }
}

/* Storages by the position where they end: lists linked through `next`. */
static void sweep(struct place *p)
{
    struct plan *plan = p->plan;
    int *ending = mem_array((size_t)plan->n_order + 1, sizeof *ending);
    int *next = mem_array(p->storages.n + 1, sizeof *next);
    size_t starting = 0;
    memset(ending, -1, ((size_t)plan->n_order + 1) * sizeof *ending);
    for (size_t i = 0; i < p->storages.n; i++) {
        next[i] = ending[p->storages.items[i].to];
        ending[p->storages.items[i].to] = (int)i;
    }
    for (int at = 0; at < plan->n_order; at++) {
        struct item *item = &plan->items.items[plan->order[at]];
        for (; starting < p->storages.n && p->storages.items[starting].from == at; starting++)
            p->storages.items[starting].offset = allocate(p, p->storages.items[starting].bytes);
        if (item->scratch_bytes) {
            item->scratch_offset = allocate(p, item->scratch_bytes);
            give_back(p, item->scratch_offset, item->scratch_bytes);
        }
        for (int s = ending[at]; s >= 0; s = next[s])
            give_back(p, p->storages.items[s].offset, p->storages.items[s].bytes);
    }
    mem_free(ending);
    mem_free(next);
}

void plan_place_memory(struct plan *plan)
{
    struct place p = {.plan = plan};
    p.position = mem_array(plan->items.n + 1, sizeof *p.position);
    p.storage_of = mem_array(plan->values.n + 1, sizeof *p.storage_of);
    memset(p.storage_of, -1, plan->values.n * sizeof *p.storage_of);
    find_lifetimes(&p);
    for (int at = 0; at < plan->n_order; at++)
        assign_storage(&p, at);
    sweep(&p);
    for (size_t i = 0; i < plan->values.n; i++)
        if (p.storage_of[i] >= 0)
            plan->values.items[i].offset = p.storages.items[p.storage_of[i]].offset;
    plan->arena_bytes = (size_t)p.end;
    vec_release(&p.storages);
    vec_release(&p.holes);
    mem_free(p.position);
    mem_free(p.storage_of);
}
