/* SPDX-License-Identifier: Apache-2.0
 *
 * Where values live. In a fixed order each value is needed from its producer to its last consumer;
 * values whose times do not overlap share addresses. Aliases share by definition; an output may
 * take over an input that ends with it, where the kernel allows. Offsets are given in one sweep
 * over the order, best fit first, in one arena for host memory and one for the device's.
 *
 * Where the order is not that in which everything runs (regions, region_find.c), bytes
 * remember who used them last: only who may wait for all of those gets them, and then does.
 */
#include <string.h>

#include "base/memory.h"
#include "exec/plan/plan_steps.h"

#define USERS_MAX 8

/* The last items that use some bytes, one of each region: what comes next waits for them. */
struct users {
    int n;         /* 0 where all is one region */
    bool too_many; /* nobody gets the bytes */
    int item[USERS_MAX];
};

struct storage {
    bool on_device;
    size_t bytes;
    int from, to; /* positions in the order */
    int64_t offset;
    struct users users;
};

struct hole {
    int64_t offset, bytes;
    struct users users;
};

struct space {              /* an arena */
    VEC(struct hole) holes; /* by offset; adjacent ones only if both together had too many users */
    int64_t end;            /* so far */
};

struct place {
    struct plan *plan;
    const struct placing *placing;
    int *position;       /* in the order, by item */
    int *storage_of;     /* by value; -1 */
    struct users *users; /* by root value; NULL where all is one region */
    bool *is_copied;     /* by root value: until the step is over, see prolong_copied */
    VEC(struct storage) storages;
    struct space spaces[2]; /* the host's, the device's */
};

/* ---- who used bytes last ---- */

static bool is_same_region(const struct place *p, int a, int b)
{
    return p->placing->region[a] == p->placing->region[b];
}

/* Of a region the last one stands for all. */
static void add_user(const struct place *p, struct users *users, int item)
{
    for (int i = 0; i < users->n; i++) {
        int *known = &users->item[i];
        if (is_same_region(p, *known, item)) {
            *known = p->position[*known] < p->position[item] ? item : *known;
            return;
        }
    }
    if (users->n == USERS_MAX)
        users->too_many = true;
    else
        users->item[users->n++] = item;
}

static bool may_take(const struct place *p, const struct users *users, int item)
{
    bool may = !users->too_many;
    for (int i = 0; may && i < users->n; i++)
        may = is_same_region(p, users->item[i], item) ||
              p->placing->may_follow(p->placing->context, users->item[i], item);
    return may;
}

static void take(const struct place *p, const struct users *users, int item)
{
    for (int i = 0; i < users->n; i++)
        if (!is_same_region(p, users->item[i], item))
            p->placing->follows(p->placing->context, users->item[i], item);
}

/* ---- lifetimes ---- */

static size_t value_bytes(const struct plan *plan, const struct value *value)
{
    if (value->layout)
        return plan->options.device->layout->bytes(value->layout);
    int64_t bytes = shape_bytes(&value->shape, value->type);
    return bytes < 0 ? 0 : (size_t)bytes;
}

static void live_until(struct place *p, int value, int at)
{
    struct plan *plan = p->plan;
    plan->values.items[value].live_to = at;
    if (p->users)
        add_user(p, &p->users[plan_root_value(plan, value)], p->placing->order[at]);
}

/* What is copied to the host or from there is used until the copy is over, which nobody looks at
 * before the step is. Regions have counted memory for it. */
static void prolong_copied(struct place *p)
{
    struct plan *plan = p->plan;
    for (int at = 0; !p->users && at < p->placing->n_order; at++) {
        const struct item *item = &plan->items.items[p->placing->order[at]];
        if (!plan_is_copied(plan, item))
            continue;
        plan->values.items[item->in[0]].live_to = p->placing->n_order - 1;
        p->is_copied[plan_root_value(plan, item->in[0])] = true;
    }
}

static void prolong(struct plan *plan, int value, int live_to)
{
    if (plan->values.items[value].live_to < live_to)
        plan->values.items[value].live_to = live_to;
}

/* First and last position of each value, those of aliases counted in. */
static void find_lifetimes(struct place *p)
{
    struct plan *plan = p->plan;
    for (int at = 0; at < p->placing->n_order; at++) {
        const struct item *item = &plan->items.items[p->placing->order[at]];
        p->position[p->placing->order[at]] = at;
        for (int k = 0; k < item->n_out; k++) {
            plan->values.items[item->out[k]].live_from = at;
            live_until(p, item->out[k], at);
        }
        for (int k = 0; k < item->n_in; k++)
            live_until(p, item->in[k], at);
    }
    prolong_copied(p);
    for (int at = p->placing->n_order - 1; at >= 0; at--) {
        const struct item *item = &plan->items.items[p->placing->order[at]];
        for (int k = 0; k < item->n_out; k++) {
            const struct value *value = &plan->values.items[item->out[k]];
            if (value->alias_of >= 0)
                prolong(plan, value->alias_of, value->live_to);
        }
        for (int k = 0; item->flow == FLOW_MERGE && k < item->n_in; k++)
            prolong(plan, item->in[k], plan->values.items[item->out[0]].live_to);
    }
}

static bool can_take_over(const struct place *p, int id, int at, const struct value *output,
                          int *storage)
{
    const struct item *item = &p->plan->items.items[id];
    if (item->output_forward != FORWARD_REUSE || output->item < 0)
        return false;
    int root = plan_root_value(p->plan, item->in[item->output_from]);
    for (int k = 0; k < item->n_in; k++) /* another input that is the same memory is still read */
        if (k != item->output_from && item->in[k] >= 0 &&
            plan_root_value(p->plan, item->in[k]) == root)
            return false;
    const struct value *input = &p->plan->values.items[root];
    *storage = p->storage_of[root];
    if (p->is_copied[root] || (p->plan->merged && p->plan->merged[root].is_merged))
        return false;
    return input->kind == VALUE_COMPUTED && *storage >= 0 && input->live_to == at &&
           input->on_device == output->on_device && p->storages.items[*storage].to == at &&
           p->storages.items[*storage].bytes == ALIGN_UP(value_bytes(p->plan, output)) &&
           (!p->users || may_take(p, &p->users[root], id));
}

static void take_over(struct place *p, int id, int value, int storage)
{
    struct storage *taken = &p->storages.items[storage];
    p->storage_of[value] = storage;
    taken->to = p->plan->values.items[value].live_to;
    if (!p->users)
        return;
    take(p, &taken->users, id);
    taken->users = p->users[value];
}

/* Of the two only one is there. */
static bool join(struct place *p, int v)
{
    const struct value *value = &p->plan->values.items[v];
    int beside = p->plan->merged ? p->plan->merged[v].beside : -1;
    int storage = beside < 0 ? -1 : p->storage_of[beside];
    if (storage < 0 || p->storages.items[storage].bytes != ALIGN_UP(value->bytes))
        return false;
    if (p->storages.items[storage].to < value->live_to)
        p->storages.items[storage].to = value->live_to;
    p->storage_of[v] = storage;
    return true;
}

static void assign_storage(struct place *p, int at)
{
    struct plan *plan = p->plan;
    int id = p->placing->order[at];
    const struct item *item = &plan->items.items[id];
    for (int k = 0; k < item->n_out; k++) {
        int v = item->out[k], storage;
        struct value *value = &plan->values.items[v];
        bool is_of_inputs = item->flow == FLOW_MERGE && k == 0;
        if (value->kind != VALUE_COMPUTED || value->alias_of >= 0 || value->is_counted ||
            is_of_inputs)
            continue;
        value->bytes = value_bytes(plan, value);
        if (join(p, v))
            continue;
        if (k == 0 && can_take_over(p, id, at, value, &storage)) {
            take_over(p, id, v, storage);
            continue;
        }
        struct storage fresh = {
            value->on_device, ALIGN_UP(value->bytes), at, value->live_to, -1, {0}};
        if (p->users)
            fresh.users = p->users[v];
        p->storage_of[v] = (int)p->storages.n;
        vec_push(&p->storages, fresh);
    }
}

/* ---- offsets ---- */

static int64_t append(struct space *s, int64_t offset, size_t bytes)
{
    if (__builtin_add_overflow(offset, (int64_t)bytes, &s->end))
        s->end = INT64_MAX; /* no device has that much */
    return offset;
}

static void remove_hole(struct space *s, size_t at)
{
    memmove(s->holes.items + at, s->holes.items + at + 1,
            (s->holes.n - at - 1) * sizeof *s->holes.items);
    s->holes.n--;
}

/* The best hole that the item may have; one at the end may grow. */
static int64_t allocate(struct place *p, struct space *s, size_t bytes, int id)
{
    size_t best = s->holes.n;
    struct hole *last = s->holes.n ? &s->holes.items[s->holes.n - 1] : NULL;
    for (size_t i = 0; i < s->holes.n; i++)
        if (s->holes.items[i].bytes >= (int64_t)bytes &&
            (best == s->holes.n || s->holes.items[i].bytes < s->holes.items[best].bytes) &&
            may_take(p, &s->holes.items[i].users, id))
            best = i;
    if (best < s->holes.n) {
        struct hole *hole = &s->holes.items[best];
        int64_t offset = hole->offset;
        take(p, &hole->users, id);
        hole->offset += (int64_t)bytes;
        hole->bytes -= (int64_t)bytes;
        if (!hole->bytes)
            remove_hole(s, best);
        return offset;
    }
    if (!last || last->offset + last->bytes != s->end || !may_take(p, &last->users, id))
        return append(s, s->end, bytes);
    take(p, &last->users, id);
    return append(s, s->holes.items[--s->holes.n].offset, bytes);
}

/* False: together they have too many users. */
static bool merge(const struct place *p, struct hole *hole, const struct hole *next)
{
    struct users users = hole->users;
    for (int i = 0; i < next->users.n; i++)
        add_user(p, &users, next->users.item[i]);
    users.too_many |= next->users.too_many;
    if (users.too_many != hole->users.too_many)
        return false;
    hole->users = users;
    hole->bytes += next->bytes;
    return true;
}

static bool is_adjacent(const struct space *s, size_t at)
{
    return at + 1 < s->holes.n &&
           s->holes.items[at].offset + s->holes.items[at].bytes == s->holes.items[at + 1].offset;
}

static void give_back(struct place *p, struct space *s, int64_t offset, size_t bytes,
                      const struct users *users)
{
    if (!bytes)
        return;
    size_t at = 0;
    while (at < s->holes.n && s->holes.items[at].offset < offset)
        at++;
    struct hole hole = {offset, (int64_t)bytes, *users};
    vec_push(&s->holes, hole);
    memmove(s->holes.items + at + 1, s->holes.items + at, (s->holes.n - 1 - at) * sizeof hole);
    s->holes.items[at] = hole;
    if (is_adjacent(s, at) && merge(p, &s->holes.items[at], &s->holes.items[at + 1]))
        remove_hole(s, at + 1);
    if (at > 0 && is_adjacent(s, at - 1) && merge(p, &s->holes.items[at - 1], &s->holes.items[at]))
        remove_hole(s, at);
}

static void place_scratch(struct place *p, int id)
{
    struct item *item = &p->plan->items.items[id];
    struct space *space = &p->spaces[!p->plan->options.device->is_host];
    const struct while_loop *loop = item->state;
    struct users users = {0};
    if (item->builtin == BUILTIN_LOOP)
        item->scratch_bytes = loop->bytes[0];
    if (!item->scratch_bytes)
        return;
    if (p->users)
        add_user(p, &users, id);
    item->scratch_offset = allocate(p, space, item->scratch_bytes, id);
    give_back(p, space, item->scratch_offset, item->scratch_bytes, &users);
}

/* Storages by the position where they end: lists linked through `next`. */
static void sweep(struct place *p)
{
    int n_order = p->placing->n_order;
    int *ending = mem_array((size_t)n_order + 1, sizeof *ending);
    int *next = mem_array(p->storages.n + 1, sizeof *next);
    size_t starting = 0;
    memset(ending, -1, ((size_t)n_order + 1) * sizeof *ending);
    for (size_t i = 0; i < p->storages.n; i++) {
        next[i] = ending[p->storages.items[i].to];
        ending[p->storages.items[i].to] = (int)i;
    }
    for (int at = 0; at < n_order; at++) {
        int id = p->placing->order[at];
        for (; starting < p->storages.n && p->storages.items[starting].from == at; starting++) {
            struct storage *storage = &p->storages.items[starting];
            storage->offset = allocate(p, &p->spaces[storage->on_device], storage->bytes, id);
        }
        place_scratch(p, id);
        for (int s = ending[at]; s >= 0; s = next[s]) {
            const struct storage *storage = &p->storages.items[s];
            give_back(p, &p->spaces[storage->on_device], storage->offset, storage->bytes,
                      &storage->users);
        }
    }
    mem_free(ending);
    mem_free(next);
}

/* One order with arenas of its own. */
static void place_order(struct place *p, const struct placing *placing)
{
    struct plan *plan = p->plan;
    p->placing = placing;
    p->storages.n = 0;
    find_lifetimes(p);
    for (int at = 0; at < placing->n_order; at++)
        assign_storage(p, at);
    sweep(p);
    for (int at = 0; at < placing->n_order; at++) {
        const struct item *item = &plan->items.items[placing->order[at]];
        for (int k = 0; k < item->n_out; k++) {
            int *storage = &p->storage_of[item->out[k]];
            if (*storage >= 0)
                plan->values.items[item->out[k]].offset = p->storages.items[*storage].offset;
            *storage = -1;
        }
    }
    for (int i = 0; i < 2; i++) {
        placing->bytes[i] = (size_t)p->spaces[i].end;
        p->spaces[i].holes.n = 0;
        p->spaces[i].end = 0;
    }
}

void plan_place_memory(struct plan *plan, const struct placing *placings, int n)
{
    struct place p = {.plan = plan};
    p.position = mem_array(plan->items.n + 1, sizeof *p.position);
    p.storage_of = mem_array(plan->values.n + 1, sizeof *p.storage_of);
    memset(p.storage_of, -1, plan->values.n * sizeof *p.storage_of);
    p.is_copied = mem_array(plan->values.n + 1, sizeof *p.is_copied);
    if (placings->region)
        p.users = mem_array(plan->values.n + 1, sizeof *p.users);
    for (int i = 0; i < n; i++)
        place_order(&p, &placings[i]);
    for (int i = 0; i < 2; i++)
        vec_release(&p.spaces[i].holes);
    vec_release(&p.storages);
    mem_free(p.position);
    mem_free(p.storage_of);
    mem_free(p.users);
    mem_free(p.is_copied);
}
