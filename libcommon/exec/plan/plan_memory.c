/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory planning. In a fixed order each value is needed from its producer to its last consumer;
 * values with disjoint lifetimes share addresses. Aliases share by definition; an output may reuse
 * the memory of an input that ends with it, if the kernel allows that. Offsets are assigned in one
 * sweep over the order, best fit first, in one arena for host memory and one for the device's.
 *
 * If regions run in no fixed order (region_find.c), free bytes remember their last users: only an
 * item that may wait for all of those gets the bytes, and then it does wait.
 *
 * Values that others may keep, and the results of cheap regions of loops, are in no arena.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "exec/device/pool.h"
#include "exec/plan/plan_steps.h"

#define USERS_MAX 8

/* The last users of some bytes, one item of each region (of a frame with an order one in all): the
 * next user waits for them. */
struct users {
    int n;
    bool too_many; /* no item may get the bytes */
    int item[USERS_MAX];
};

/* A range of bytes, taken or free. */
struct block {
    int64_t offset, bytes;
    int owner;          /* while it is taken: of the values with these bytes the last to end */
    struct users users; /* while it is free */
    int before, after;  /* by offset: a ring; block 0 stands for both ends */
    bool is_free;       /* beside another one only if they had too many users together */
};

struct space { /* an arena */
    VEC(struct block) blocks;
    VEC(int) free; /* blocks, by bytes, then offset */
    int64_t end;   /* so far */
};

/* An item gets memory that another region used last. */
struct reuse {
    int from_region, to_region;
    int position; /* position of `before` in its frame */
    int before, item;
};

/* A value while memory is placed. */
struct placed {
    struct users users; /* of a root value */
    bool is_kept; /* a root value that is not overwritten, as a Merge may pass it on, or because it
                   * is copied, and in use until the step is over */
    int beside;   /* a value of another branch, with the same memory; -1: none */
    int block;    /* 0: none of its own, or no bytes */
    int next;     /* that ends at the same position; -1: none */
    int last;     /* position of the last item of its own region that needs it */
};

struct place {
    struct plan *plan;
    const struct region_find *find;
    VEC(struct reuse) reuses;
    const struct plan_frame *frame;
    int n_order;
    int *ending; /* by position: the first of the values that end there; -1: none */
    struct placed *values;
    struct space spaces[2]; /* the host's, the device's */
};

/* ---- values that others may keep ---- */

static void count_inputs(struct plan *plan, const struct item *item, bool keeps_all)
{
    const struct plan_frame *loop = item->builtin == BUILTIN_LOOP ? item->state : NULL;
    for (int k = 0; k < item->n_in; k++) {
        bool is_kept = loop ? loop->kept[k] : item->node && node_keeps(item->node, k);
        if (item->in[k] < 0 || !(keeps_all || is_kept))
            continue;
        struct value *root = &plan->values.items[plan_root_value(plan, item->in[k])];
        root->is_counted |= root->kind == VALUE_COMPUTED;
        if (is_kept && root->kind == VALUE_CARRIED)
            plan->frames.items[item->frame].kept[root->feed] = true;
    }
}

/* Async ops, fetches, copies and ops that keep an input may need a value for longer than is known
 * here, so it is counted; so are, in a loop, the values for the next iteration. */
static void count_kept(struct plan *plan, const struct item *item)
{
    bool keeps_all =
        !plan_has_order(plan, item->frame)
            ? item->is_point || item->builtin == BUILTIN_FETCH || plan_is_copied(plan, item)
            : item->frame && item->node && node_is(item->node, "NextIteration");
    count_inputs(plan, item, keeps_all);
}

static void count_uses(struct plan *plan)
{
    vec_each(value, &plan->values)
        value->n_uses = 0;
    vec_each(item, &plan->items) {
        for (int k = 0; k < item->n_in && !item->removed; k++)
            if (item->in[k] >= 0)
                plan->values.items[item->in[k]].n_uses++;
    }
}

#define GIVEN_BYTES (64 << 10) /* smaller values may as well be copied */

/* A value that is assigned to a variable which nothing else in the plan uses, such as an initial
 * value, becomes that variable's memory, as do values that it overwrites or views: in a process
 * whose variables fill its memory there is no room for both. */
static void count_given(struct plan *plan, const struct item *item)
{
    struct value *values = plan->values.items;
    int v = values[item->in[0]].n_uses == 1 ? item->in[1] : -1;
    while (v >= 0 && values[v].n_uses == 1 && values[v].kind == VALUE_COMPUTED &&
           shape_bytes(&values[v].shape, values[v].type) >= GIVEN_BYTES) {
        values[v].is_counted = values[v].is_given = true;
        item = &plan->items.items[values[v].item];
        bool is_over = item->output_over && item->out[item->output_over - 1] == v;
        v = is_over ? item->in[item->output_from] : values[v].alias_of;
    }
}

/* In a whole plan on a device with memory of its own, kept values are copied instead. Elsewhere a
 * Merge passes on the memory of an input, so its inputs are counted if its output is, and an alias
 * of counted memory is counted as well. */
void plan_find_counted(struct plan *plan)
{
    const struct device *device = plan->options.device;
    bool counts = !plan->is_whole || device->is_host;
    for (int at = plan->n_order; counts && at-- > 0;) /* loops before the frames around them */
        count_kept(plan, &plan->items.items[plan->order[at]]);
    count_uses(plan);
    vec_each(item, &plan->items) {
        if (item->region < 0 && !item->removed)
            count_kept(plan, item);
        if (device->is_host && !item->removed && item->node && node_has(item->node, OP_OVERWRITES))
            count_given(plan, item);
    }
    for (int at = plan->n_order; plan->has_branches && at-- > 0;) {
        const struct item *item = &plan->items.items[plan->order[at]];
        if (item->flow == FLOW_MERGE && plan->values.items[item->out[0]].is_counted)
            count_inputs(plan, item, true);
    }
    for (size_t v = 0; v < plan->values.n && counts; v++) {
        struct value *value = &plan->values.items[v];
        const struct value *root = &plan->values.items[plan_root_value(plan, (int)v)];
        if (value->kind == VALUE_COMPUTED && value->alias_of >= 0)
            value->is_counted |= root->is_counted || root->kind == VALUE_CARRIED;
    }
    for (int i = 0; i <= !device->is_host; i++)
        plan->pools[i] = pool_new(plan->options.device, i == !device->is_host);
}

/* ---- the last users of bytes ---- */

static bool is_in_order(const struct place *p, int a, int b)
{
    const struct item *items = p->plan->items.items;
    return p->frame->has_order || items[a].region == items[b].region;
}

/* Keeps only the last user in each region. */
static void add_user(const struct place *p, struct users *users, int item)
{
    for (int i = 0; i < users->n; i++) {
        int *known = &users->item[i];
        if (is_in_order(p, *known, item)) {
            *known = p->plan->items.items[*known].position < p->plan->items.items[item].position
                         ? item
                         : *known;
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
        may = is_in_order(p, users->item[i], item) ||
              arrival_set_is_less(&p->find->sets, p->find->keys[users->item[i]].ready,
                                  p->find->keys[item].ready);
    return may;
}

static void follow_users(struct place *p, const struct users *users, int item)
{
    const struct item *items = p->plan->items.items;
    for (int i = 0; i < users->n; i++) {
        const struct item *before = &items[users->item[i]];
        struct reuse reuse = {.from_region = before->region,
                              .to_region = items[item].region,
                              .position = before->position,
                              .before = users->item[i],
                              .item = item};
        if (!is_in_order(p, reuse.before, item))
            vec_push(&p->reuses, reuse);
    }
}

/* ---- lifetimes ---- */

static int64_t value_bytes(const struct plan *plan, const struct value *value)
{
    int64_t bytes = value->layout ? (int64_t)plan->options.device->layout->bytes(value->layout)
                                  : shape_bytes(&value->shape, value->type);
    return bytes < 0 ? 0 : (int64_t)ALIGN_UP((size_t)bytes);
}

static void prolong(struct plan *plan, int value, int live_to)
{
    if (plan->values.items[value].live_to < live_to)
        plan->values.items[value].live_to = live_to;
}

/* Finds the last position of each value, including those of its aliases. In a fixed order a value
 * that is copied to the host or from there is used until the copy is over, which is known only at
 * the end of the step. In regions such a value has reference-counted memory instead. */
static void find_lifetimes(struct place *p)
{
    struct plan *plan = p->plan;
    for (int at = 0; at < p->n_order; at++) {
        int id = p->frame->order.items[at].item;
        const struct item *item = &plan->items.items[id];
        for (int k = 0; k < item->n_out + item->n_in; k++) {
            int v = k < item->n_out ? item->out[k] : item->in[k - item->n_out];
            plan->values.items[v].live_to = at;
            add_user(p, &p->values[plan_root_value(plan, v)].users, id);
            if (region_has_made(plan, v, item->region))
                p->values[v].last = at;
        }
    }
    for (int at = p->n_order - 1; at >= 0; at--) {
        const struct item *item = &plan->items.items[p->frame->order.items[at].item];
        if (p->frame->has_order && plan_is_copied(plan, item)) {
            prolong(plan, item->in[0], p->n_order - 1);
            p->values[plan_root_value(plan, item->in[0])].is_kept = true;
        }
        for (int k = 0; k < item->n_out; k++) {
            const struct value *value = &plan->values.items[item->out[k]];
            if (value->alias_of >= 0)
                prolong(plan, value->alias_of, value->live_to);
        }
        for (int k = 0; item->flow == FLOW_MERGE && k < item->n_in; k++)
            prolong(plan, item->in[k], plan->values.items[item->out[0]].live_to);
    }
}

/* ---- free blocks ---- */

/* The place among the free blocks of one with these bytes, at this offset. */
static size_t free_place(const struct space *s, int64_t bytes, int64_t offset)
{
    size_t first = 0, end = s->free.n;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        const struct block *block = &s->blocks.items[s->free.items[middle]];
        if (block->bytes < bytes || (block->bytes == bytes && block->offset < offset))
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

static void set_free(struct space *s, int block, bool is_free)
{
    struct block *set = &s->blocks.items[block];
    size_t at = free_place(s, set->bytes, set->offset), n_behind = s->free.n - at - !is_free;
    set->is_free = is_free;
    vec_reserve(&s->free, s->free.n + 1);
    int *place = s->free.items + at;
    memmove(place + is_free, place + !is_free, n_behind * sizeof *place);
    s->free.n = at + n_behind + is_free;
    if (is_free)
        *place = block;
}

/* ---- offsets ---- */

static int add_block(struct space *s, int before, int64_t offset, int64_t bytes)
{
    int added = (int)s->blocks.n, after = s->blocks.items[before].after;
    vec_push(&s->blocks, ((struct block){offset, bytes, .before = before, .after = after}));
    s->blocks.items[before].after = s->blocks.items[after].before = added;
    return added;
}

static void remove_block(struct space *s, int block)
{
    const struct block *removed = &s->blocks.items[block];
    s->blocks.items[removed->before].after = removed->after;
    s->blocks.items[removed->after].before = removed->before;
}

/* Takes the smallest block that the item may have, the first of equal ones; a free block at the end
 * may grow. */
static int allocate(struct place *p, struct space *s, int64_t bytes, int id)
{
    if (!bytes)
        return 0;
    int last = s->blocks.items[0].before, best = 0;
    for (size_t at = free_place(s, bytes, 0); at < s->free.n && !best; at++)
        if (may_take(p, &s->blocks.items[s->free.items[at]].users, id))
            best = s->free.items[at];
    if (!best && s->blocks.items[last].is_free && may_take(p, &s->blocks.items[last].users, id))
        best = last;
    if (!best)
        best = add_block(s, last, s->end, bytes);
    else {
        set_free(s, best, false);
        follow_users(p, &s->blocks.items[best].users, id);
    }
    struct block whole = s->blocks.items[best];
    if (whole.bytes > bytes) {
        int rest = add_block(s, best, whole.offset + bytes, whole.bytes - bytes);
        s->blocks.items[rest].users = whole.users;
        set_free(s, rest, true);
    }
    s->blocks.items[best].bytes = bytes;
    if (best == s->blocks.items[0].before && __builtin_add_overflow(whole.offset, bytes, &s->end))
        s->end = INT64_MAX; /* no device has that much */
    return best;
}

/* Returns false if together they have too many users. */
static bool merge(const struct place *p, struct block *block, const struct block *next)
{
    struct users users = block->users;
    for (int i = 0; i < next->users.n; i++)
        add_user(p, &users, next->users.item[i]);
    users.too_many |= next->users.too_many;
    if (users.too_many != block->users.too_many)
        return false;
    block->users = users;
    block->bytes += next->bytes;
    return true;
}

static void free_block(struct place *p, struct space *s, int block, const struct users *users)
{
    struct block *blocks = s->blocks.items;
    int before = blocks[block].before, after = blocks[block].after;
    if (!block)
        return;
    blocks[block].users = *users;
    if (blocks[after].is_free && merge(p, &blocks[block], &blocks[after])) {
        set_free(s, after, false);
        remove_block(s, after);
    }
    if (blocks[before].is_free) {
        set_free(s, before, false);
        if (merge(p, &blocks[before], &blocks[block]))
            remove_block(s, block);
        else
            set_free(s, block, true);
        set_free(s, before, true);
    } else
        set_free(s, block, true);
}

/* ---- values ---- */

/* The root of the input that the output may overwrite; -1: none. */
static int overwritten(const struct place *p, int id, int output, int at)
{
    const struct item *item = &p->plan->items.items[id];
    const struct value *values = p->plan->values.items, *value = &values[item->out[output]];
    if (output != item->output_over - 1)
        return -1;
    int root = plan_root_value(p->plan, item->in[item->output_from]);
    const struct placed *from = &p->values[root];
    const struct space *space = &p->spaces[value->on_device];
    bool may = from->block && !from->is_kept && values[root].live_to == at &&
               values[root].on_device == value->on_device &&
               space->blocks.items[from->block].bytes == value_bytes(p->plan, value) &&
               may_take(p, &from->users, id);
    for (int k = 0; k < item->n_in && may; k++) /* not if another input is the same memory */
        may = k == item->output_from || item->in[k] < 0 ||
              plan_root_value(p->plan, item->in[k]) != root;
    return may ? root : -1;
}

/* An output has the bytes of a value in another branch, of which only one is alive, or those of the
 * input that it overwrites; else a block of its own. */
static void place_output(struct place *p, int id, int output, int at)
{
    int v = p->plan->items.items[id].out[output];
    struct value *values = p->plan->values.items, *value = &values[v];
    struct placed *placed = &p->values[v];
    struct space *space = &p->spaces[value->on_device];
    int64_t bytes = value_bytes(p->plan, value);
    int beside = placed->beside < 0 ? 0 : p->values[placed->beside].block;
    int over = overwritten(p, id, output, at);
    if (beside && space->blocks.items[beside].bytes == bytes) {
        placed->block = beside;
    } else if (over >= 0) {
        placed->block = p->values[over].block;
        follow_users(p, &p->values[over].users, id);
    } else {
        placed->block = allocate(p, space, bytes, id);
        space->blocks.items[placed->block].owner = v;
    }
    struct block *block = &space->blocks.items[placed->block];
    value->offset = block->offset;
    if (values[block->owner].live_to <= value->live_to)
        block->owner = v;
    placed->next = p->ending[value->live_to];
    p->ending[value->live_to] = v;
}

static void place_scratch(struct place *p, int id)
{
    struct item *item = &p->plan->items.items[id];
    struct space *space = &p->spaces[!p->plan->options.device->is_host];
    const struct plan_frame *loop = item->state;
    struct users users = {.n = 1, .item = {id}};
    if (item->builtin == BUILTIN_LOOP)
        item->scratch_bytes = loop->arena_bytes[0];
    if (!item->scratch_bytes)
        return;
    int block = allocate(p, space, (int64_t)item->scratch_bytes, id);
    item->scratch_offset = space->blocks.items[block].offset;
    free_block(p, space, block, &users);
}

/* Where regions run in no fixed order, the last item of its region that needs an output without a
 * place drops it. */
static void find_drops(struct place *p, struct plan_frame *frame)
{
    const struct plan *plan = p->plan;
    for (int at = 0; at < p->n_order && !frame->has_order; at++) {
        const struct item *item = &plan->items.items[frame->order.items[at].item];
        for (int k = 0; k < item->n_out; k++) {
            int v = item->out[k];
            const struct value *value = &plan->values.items[v];
            struct region_item *where = &frame->order.items[p->values[v].last];
            if (value->offset >= 0 || value->is_ref)
                continue;
            plan->next_drop[v] = where->drops ? where->first_drop : -1;
            where->first_drop = v;
            where->drops = true;
        }
    }
}

/* Places the values of the frame's regions in arenas of its own. */
static void place_frame(struct place *p, struct plan_frame *frame)
{
    struct plan *plan = p->plan;
    p->frame = frame;
    p->n_order = (int)frame->order.n;
    p->ending = mem_array((size_t)p->n_order + 1, sizeof *p->ending);
    memset(p->ending, -1, ((size_t)p->n_order + 1) * sizeof *p->ending);
    for (int i = 0; i < 2; i++) {
        struct space *space = &p->spaces[i];
        space->blocks.n = 0;
        vec_push(&space->blocks, (struct block){0});
        space->free.n = 0;
        space->end = 0;
    }
    find_lifetimes(p);
    for (int at = 0; at < p->n_order; at++) {
        int id = frame->order.items[at].item;
        const struct item *item = &plan->items.items[id];
        for (int k = 0; k < item->n_out; k++) {
            const struct value *value = &plan->values.items[item->out[k]];
            bool is_of_inputs = item->flow == FLOW_MERGE && k == 0;
            if (value->kind == VALUE_COMPUTED && value->alias_of < 0 && !value->is_counted &&
                !is_of_inputs)
                place_output(p, id, k, at);
        }
        place_scratch(p, id);
        for (int v = p->ending[at]; v >= 0; v = p->values[v].next) {
            struct space *space = &p->spaces[plan->values.items[v].on_device];
            if (space->blocks.items[p->values[v].block].owner == v)
                free_block(p, space, p->values[v].block, &p->values[v].users);
        }
    }
    find_drops(p, frame);
    for (int i = 0; i < 2; i++)
        frame->arena_bytes[i] = (size_t)p->spaces[i].end;
    mem_free(p->ending);
}

/* ---- all frames ---- */

/* Marks values that have no place in an arena as counted. In a loop a cheap region would hold an
 * arena for each iteration that runs ahead. A copy to the device may still run when its only
 * consumer turns out to be dead. */
static void find_unplaced(const struct region_find *f)
{
    struct plan *plan = f->plan;
    count_uses(plan);
    vec_each(item, &plan->items) {
        if (item->removed || item->region < 0 || plan_has_order(plan, item->frame))
            continue;
        const struct region *r = &plan->regions.items[item->region];
        bool has_none = f->alone || plan_is_copied(plan, item) ||
                        (r->frame && r->is_cheap && !item->scratch_bytes);
        for (int k = 0; k < item->n_out; k++) {
            struct value *value = &plan->values.items[item->out[k]];
            value->is_counted |= has_none || value->is_outgoing || value->alias_input >= 0 ||
                                 value->type == STRING || !shape_is_known(&value->shape);
        }
    }
}

static bool exclude(const struct frames *frames, int a, int b)
{
    const struct condition *all = frames->conditions.items;
    for (int x = a; x >= 0; x = all[x].parent)
        for (int y = b; y >= 0; y = all[y].parent)
            if (all[x].predicate.node == all[y].predicate.node &&
                all[x].predicate.slot == all[y].predicate.slot && all[x].branch != all[y].branch)
                return true;
    return false;
}

/* Pairs inputs of a Merge that exclude each other. A value is in one pair at most, so it never
 * shares memory with a value that is alive at the same time. */
static void join_branches(struct place *p)
{
    const struct plan *plan = p->plan;
    for (int at = 0; plan->has_branches && at < plan->n_order; at++) {
        const struct item *item = &plan->items.items[plan->order[at]];
        if (item->flow != FLOW_MERGE)
            continue;
        p->values[item->out[0]].is_kept = true;
        for (int k = 0, a = -1, b; k < item->n_in; k++, a = b) {
            b = plan_root_value(plan, item->in[k]);
            p->values[b].is_kept = true;
            if (a >= 0 && plan->values.items[a].kind == VALUE_COMPUTED &&
                plan->values.items[b].kind == VALUE_COMPUTED && p->values[a].beside < 0 &&
                p->values[b].beside < 0 &&
                exclude(plan->graph_frames, plan->items.items[plan->values.items[a].item].condition,
                        plan->items.items[plan->values.items[b].item].condition)) {
                p->values[a].beside = b;
                p->values[b].beside = a;
            }
        }
    }
}

static int by_regions(const void *a, const void *b)
{
    const struct reuse *x = a, *y = b;
    if (x->from_region != y->from_region)
        return x->from_region < y->from_region ? -1 : 1;
    if (x->to_region != y->to_region)
        return x->to_region < y->to_region ? -1 : 1;
    return x->position > y->position ? -1 : x->position < y->position;
}

void plan_place_memory(struct region_find *f)
{
    struct plan *plan = f->plan;
    struct place p = {.plan = plan, .find = f};
    find_unplaced(f);
    plan->next_drop = arena_array(&plan->memory, plan->values.n + 1, sizeof *plan->next_drop);
    p.values = arena_array(&f->memory, plan->values.n + 1, sizeof *p.values);
    for (size_t v = 0; v < plan->values.n; v++)
        p.values[v].beside = -1;
    join_branches(&p);
    for (size_t i = plan->frames.n; i-- > 0;) /* loops before the frames around them */
        place_frame(&p, &plan->frames.items[i]);
    for (int i = 0; i < 2; i++) {
        vec_release(&p.spaces[i].blocks);
        vec_release(&p.spaces[i].free);
    }
    /* A region waits as a whole, so of its reuses from another region only the last one counts. */
    const struct reuse *last = NULL;
    if (p.reuses.n)
        qsort(p.reuses.items, p.reuses.n, sizeof *p.reuses.items, by_regions);
    vec_each(reuse, &p.reuses) {
        if (last && last->from_region == reuse->from_region && last->to_region == reuse->to_region)
            continue;
        vec_push_in(&plan->memory, &plan->items.items[reuse->item].after, reuse->before);
        last = reuse;
    }
    vec_release(&p.reuses);
}
