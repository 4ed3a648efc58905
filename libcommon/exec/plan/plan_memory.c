/* SPDX-License-Identifier: Apache-2.0
 *
 * Where values live. In a fixed order each value is needed from its producer to its last consumer;
 * values whose times do not overlap share addresses. Aliases share by definition; an output may
 * take over an input that ends with it, where the kernel allows. Offsets are given in one sweep
 * over the order, best fit first, in one arena for host memory and one for the device's.
 */
#include <string.h>

#include "base/memory.h"
#include "exec/plan/plan_internal.h"

struct storage {
    bool on_device;
    size_t bytes;
    int from, to; /* positions in the order */
    int64_t offset;
};

struct hole {
    int64_t offset, bytes;
};

struct space {              /* an arena */
    VEC(struct hole) holes; /* by offset, never adjacent */
    int64_t end;            /* so far */
};

struct place {
    struct plan *plan;
    int *position;   /* by item */
    int *storage_of; /* by value; -1 */
    VEC(struct storage) storages;
    struct space spaces[2]; /* the host's, the device's */
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
           input->on_device == output->on_device && p->storages.items[*storage].to == at &&
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
        struct storage fresh = {value->on_device, ALIGN_UP(value->bytes), at, value->live_to, -1};
        p->storage_of[item->out[k]] = (int)p->storages.n;
        vec_push(&p->storages, fresh);
    }
}

/* ---- offsets ---- */

static int64_t allocate(struct space *s, size_t bytes)
{
    size_t best = s->holes.n;
    for (size_t i = 0; i < s->holes.n; i++)
        if (s->holes.items[i].bytes >= (int64_t)bytes &&
            (best == s->holes.n || s->holes.items[i].bytes < s->holes.items[best].bytes))
            best = i;
    if (best == s->holes.n) {
        int64_t offset = s->end;
        if (s->holes.n &&
            s->holes.items[s->holes.n - 1].offset + s->holes.items[s->holes.n - 1].bytes == s->end)
            offset = s->holes.items[--s->holes.n].offset; /* grow the last hole */
        if (__builtin_add_overflow(offset, (int64_t)bytes, &s->end))
            s->end = INT64_MAX; /* no device has that much */
        return offset;
    }
    struct hole *hole = &s->holes.items[best];
    int64_t offset = hole->offset;
    hole->offset += (int64_t)bytes;
    hole->bytes -= (int64_t)bytes;
    if (!hole->bytes) {
        memmove(hole, hole + 1, (s->holes.n - best - 1) * sizeof *hole);
        s->holes.n--;
    }
    return offset;
}

static void give_back(struct space *s, int64_t offset, size_t bytes)
{
    if (!bytes)
        return;
    size_t at = 0;
    while (at < s->holes.n && s->holes.items[at].offset < offset)
        at++;
    struct hole hole = {offset, (int64_t)bytes};
    vec_push(&s->holes, hole);
    memmove(s->holes.items + at + 1, s->holes.items + at, (s->holes.n - 1 - at) * sizeof hole);
    s->holes.items[at] = hole;
    if (at + 1 < s->holes.n && offset + hole.bytes == s->holes.items[at + 1].offset) {
        s->holes.items[at].bytes += s->holes.items[at + 1].bytes;
        memmove(s->holes.items + at + 1, s->holes.items + at + 2,
                (s->holes.n - at - 2) * sizeof hole);
        s->holes.n--;
    }
    if (at > 0 && s->holes.items[at - 1].offset + s->holes.items[at - 1].bytes == offset) {
        s->holes.items[at - 1].bytes += s->holes.items[at].bytes;
        memmove(s->holes.items + at, s->holes.items + at + 1, (s->holes.n - at - 1) * sizeof hole);
        s->holes.n--;
    }
}

static void start(struct place *p, struct storage *storage)
{
    storage->offset = allocate(&p->spaces[storage->on_device], storage->bytes);
}

static void end(struct place *p, const struct storage *storage)
{
    give_back(&p->spaces[storage->on_device], storage->offset, storage->bytes);
}

/* Storages by the position where they end: lists linked through `next`. */
static void sweep(struct place *p)
{
    struct plan *plan = p->plan;
    int *ending = mem_array((size_t)plan->n_order + 1, sizeof *ending);
    int *next = mem_array(p->storages.n + 1, sizeof *next);
    size_t starting = 0;
    struct space *scratch = &p->spaces[!plan->options.device->is_host];
    memset(ending, -1, ((size_t)plan->n_order + 1) * sizeof *ending);
    for (size_t i = 0; i < p->storages.n; i++) {
        next[i] = ending[p->storages.items[i].to];
        ending[p->storages.items[i].to] = (int)i;
    }
    for (int at = 0; at < plan->n_order; at++) {
        struct item *item = &plan->items.items[plan->order[at]];
        for (; starting < p->storages.n && p->storages.items[starting].from == at; starting++)
            start(p, &p->storages.items[starting]);
        if (item->scratch_bytes) {
            item->scratch_offset = allocate(scratch, item->scratch_bytes);
            give_back(scratch, item->scratch_offset, item->scratch_bytes);
        }
        for (int s = ending[at]; s >= 0; s = next[s])
            end(p, &p->storages.items[s]);
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
    for (int i = 0; i < 2; i++) {
        plan->arena_bytes[i] = (size_t)p.spaces[i].end;
        vec_release(&p.spaces[i].holes);
    }
    vec_release(&p.storages);
    mem_free(p.position);
    mem_free(p.storage_of);
}
