/* SPDX-License-Identifier: Apache-2.0
 *
 * Regions: groups of items of a dynamic plan that run one after the other in a fixed order, as all
 * items of a whole plan do.
 *
 * An *async op* (`is_point`) is an item of which only running tells when, or whether, its outputs
 * come: an asynchronous kernel, a Send, control flow. Its output is an *arrival*. Every item has
 * two sets of arrivals: those that it waits for (`ready`) and those without which it is dead
 * (`dead`). Items of one frame with both sets equal become ready by the same arrival and are alive
 * together: they are a region.
 *
 * Regions cannot wait for each other in a circle: along an edge `ready` only grows, and where it
 * stays the same while `dead` does not, the level grows. Memory goes from an item to one of another
 * region only if that one waits for a proper superset of the first one's arrivals: so it awaits
 * nothing new, and no order of arrivals can hang.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "exec/plan/plan_steps.h"
#include "graph/op_cost.h"

#define ARRIVALS_MAX 8192 /* with more, every item is a region */

/* ---- arrivals ---- */

/* Returns whether outputs come one without the other, as those of a Switch do. */
static bool brings_apart(const struct item *item)
{
    return item->role == ROLE_PLAIN && item->n_out > 1 && node_has(item->node, OP_CONTROL_FLOW);
}

static int number_arrivals(struct region_find *f)
{
    int n = 0;
    for (size_t i = 0; i < f->plan->items.n; i++) {
        const struct item *item = &f->plan->items.items[i];
        f->arrival[i] = n;
        if (item->is_point && !item->removed && !plan_is_repeated(f->plan, item))
            n += brings_apart(item) ? item->n_out + 1 : 1;
    }
    for (size_t i = 0; i < f->plan->frames.n; i++)
        f->over_arrival[i] = n++;
    return n;
}

/* ---- what an item waits for ---- */

static void wait_for_arrival(struct region_find *f, struct key *key, int arrival, bool dies)
{
    key->ready = arrival_set_with(&f->sets, key->ready, arrival);
    if (dies)
        key->dead = arrival_set_with(&f->sets, key->dead, arrival);
}

/* slot -1: waits only until the item is over. */
static void wait_for_item(struct region_find *f, struct key *key, int from, int slot, bool dies)
{
    const struct key *other = &f->keys[from];
    key->ready = arrival_set_union(&f->sets, key->ready, other->ready);
    if (dies)
        key->dead = arrival_set_union(&f->sets, key->dead, other->dead);
    const struct item *item = &f->plan->items.items[from];
    if (item->is_point)
        wait_for_arrival(f, key, f->arrival[from] + (brings_apart(item) ? slot + 1 : 0), dies);
}

/* As plan_connect.c has it: the item waits until the loop is over, or all that enters its loop
 * waits. */
static void wait_after(struct region_find *f, struct key *key, int before, int id)
{
    const struct plan *plan = f->plan;
    int mine = plan->items.items[id].frame, its = plan->items.items[before].frame;
    int common = access_common_frame(plan->parents, its, mine);
    if (its == common && mine == common)
        wait_for_item(f, key, before, -1, false);
    else if (mine == common)
        wait_for_arrival(f, key, f->over_arrival[access_frame_below(plan->parents, common, its)],
                         false);
}

/* A Merge goes on with one of its inputs, so it has an empty key. Roles that may be alive when
 * their inputs are dead have an empty `dead`. */
static void find_key(struct region_find *f, int id)
{
    struct key *key = &f->keys[id];
    const struct item *items = f->plan->items.items;
    enum item_role role = items[id].role;
    if (role == ROLE_MERGE)
        return;
    for (struct before b = {0}; plan_next_before(f->plan, id, &b);)
        if (b.is_after)
            wait_after(f, key, b.item, id);
        else
            wait_for_item(f, key, b.item, b.slot, true);
    for (struct before b = {0}; plan_next_before(f->plan, id, &b);) {
        const struct key *other = &f->keys[b.item];
        bool is_near = !items[b.item].is_point && items[b.item].frame == items[id].frame;
        int level = other->dead == key->dead ? other->level : other->level + 1;
        if (is_near && other->ready == key->ready && level > key->level)
            key->level = level;
    }
    if (role == ROLE_EXIT || role == ROLE_TRIGGER || role == ROLE_NEXT)
        key->dead = SET_EMPTY;
}

/* ---- regions ---- */

static int region_of_key(struct region_find *f, struct map *known, int id)
{
    const struct key *key = &f->keys[id];
    int64_t region = (int64_t)f->plan->regions.n;
    const struct item *item = &f->plan->items.items[id];
    const char *name = arena_printf(&f->memory, "%d %d %d %d %d", item->frame, key->ready,
                                    key->dead, key->level, f->alone ? id : -1);
    if (map_get(known, name, &region))
        return (int)region;
    map_put(known, name, region);
    struct region fresh = {.frame = item->frame, .n_ready = item->n_ready, .level = key->level};
    vec_push_in(&f->plan->memory, &f->plan->regions, fresh);
    return (int)region;
}

static int by_arrivals(const void *a, const void *b)
{
    const struct region *x = *(struct region *const *)a, *y = *(struct region *const *)b;
    if (x->n_ready != y->n_ready)
        return x->n_ready < y->n_ready ? -1 : 1;
    if (x->level != y->level)
        return x->level < y->level ? -1 : 1;
    return x < y ? -1 : 1;
}

/* Groups items by keys, which stand for facts that only running tells, and ranks the regions. An
 * edge leads to a region with more arrivals, or of a higher level. */
static int find_by_keys(struct region_find *f, struct error *err)
{
    struct plan *plan = f->plan;
    struct map known = MAP_INIT;
    int *order = arena_array(&f->memory, plan->items.n + 1, sizeof *order), n_order;
    int *rank = arena_array(&f->memory, plan->items.n + 1, sizeof *rank);
    for (size_t i = 0; i < plan->items.n; i++)
        rank[i] = -(plan->items.items[i].removed || plan_is_repeated(plan, &plan->items.items[i]));
    int code = plan_sort(plan, rank, order, &n_order, err);
    for (int i = 0; !code && i < n_order; i++) {
        struct item *item = &plan->items.items[order[i]];
        if (!f->alone)
            find_key(f, order[i]);
        item->n_ready = arrival_set_count(&f->sets, f->keys[order[i]].ready);
        item->region = item->is_point ? -1 : region_of_key(f, &known, order[i]);
    }
    size_t n = plan->regions.n;
    struct region **all = arena_array(&f->memory, n + 1, sizeof *all);
    for (size_t i = 0; i < n; i++)
        all[i] = &plan->regions.items[i];
    if (n)
        qsort(all, n, sizeof *all, by_arrivals);
    for (size_t i = 0; i < n; i++)
        all[i]->rank = (int)i;
    map_release(&known);
    return code;
}

/* Marks all items of an iteration that a loop's condition needs. */
static void mark_condition(struct plan *plan, const struct plan_frame *loop)
{
    VEC(int) todo = VEC_INIT;
    vec_push(&todo, plan->values.items[loop->goes_on].item);
    while (todo.n) {
        int id = vec_pop(&todo);
        if (plan->items.items[id].in_condition)
            continue;
        plan->items.items[id].in_condition = true;
        for (struct before b = {0}; plan_next_before(plan, id, &b);)
            vec_push(&todo, b.item);
    }
    vec_release(&todo);
}

/* If one order runs all of a frame, the frame is one region; a loop has two: its condition, and the
 * rest of its body. */
static void find_by_order(struct region_find *f)
{
    struct plan *plan = f->plan;
    int *first = arena_array(&f->memory, plan->frames.n, sizeof *first);
    for (int i = 0; i < (int)plan->frames.n; i++) {
        first[i] = (int)plan->regions.n;
        for (int k = 0; plan_has_order(plan, i) && k <= (i != FRAME_ROOT); k++)
            vec_push_in(&plan->memory, &plan->regions, ((struct region){.frame = i}));
        if (i != FRAME_ROOT && plan_has_order(plan, i))
            mark_condition(plan, &plan->frames.items[i]);
    }
    vec_each(item, &plan->items) {
        if (plan_has_order(plan, item->frame))
            item->region = first[item->frame] + (item->frame && !item->in_condition);
    }
}

/* ---- their order ---- */

/* Puts the items of each region behind one another. In a whole plan, copies of feeds come first:
 * feeds may be prefetched, and captured work never contains their copies. Loops come after
 * everything outside of them, one after the other. */
static int order_items(struct region_find *f, struct error *err)
{
    struct plan *plan = f->plan;
    int *rank = arena_array(&f->memory, plan->items.n + 1, sizeof *rank), n = (int)plan->regions.n;
    for (size_t i = 0; i < plan->items.n; i++) {
        const struct item *item = &plan->items.items[i];
        if (item->region < 0 || item->removed)
            rank[i] = -1;
        else if (plan_is_repeated(plan, item))
            rank[i] = 2 * (n + item->frame) + !item->in_condition;
        else
            rank[i] = 2 * plan->regions.items[item->region].rank +
                      !(plan->is_whole && plan_is_feed_copy(plan, item));
    }
    plan->order = arena_array(&plan->memory, plan->items.n + 1, sizeof *plan->order);
    return plan_sort(plan, rank, plan->order, &plan->n_order, err);
}

static void fill_regions(struct plan *plan)
{
    for (int at = 0; at < plan->n_order; at++) {
        struct item *item = &plan->items.items[plan->order[at]];
        struct region *region = &plan->regions.items[item->region];
        struct plan_frame *frame = &plan->frames.items[item->frame];
        struct region_item entry = {.item = plan->order[at], .looks = item->seen != NULL};
        if (!region->n++) {
            region->first = (int)frame->order.n;
            region->is_cheap = true;
        }
        region->is_cheap &= item->is_cheap = item_is_cheap(plan, item);
        item->position = (int)frame->order.n;
        vec_push_in(&plan->memory, &frame->order, entry);
        item->head = frame->order.items[region->first].item;
    }
}

/* ---- sending the largest value later ---- */

/* A gradient that is larger than all others together, such as that of the first dense layer behind
 * convolutions, is computed later than it could be: when half of the remaining work is done. By
 * then the others have probably returned, so it takes over their memory, and half of the time is
 * left for sending it. */

#define INPUTS_SHARE 8 /* inputs stay for longer: they must be so much smaller than the output */
#define OTHERS_SHARE 4 /* the others must be worth it: at least this part of the largest */

static double bytes_of(const struct value *value)
{
    return shape_is_known(&value->shape) ? (double)shape_bytes(&value->shape, value->type) : 0;
}

double plan_outgoing_bytes(const struct plan *plan, int id)
{
    const struct item *item = &plan->items.items[id];
    double bytes = 0;
    for (int i = 0; i < item->n_out; i++) {
        const struct value *value = &plan->values.items[item->out[i]];
        if (value->is_outgoing && value->alias_input < 0)
            bytes += bytes_of(value);
    }
    return bytes;
}

/* Returns whether its inputs may live longer: they are small, and no variables. */
static bool may_wait(const struct plan *plan, int id)
{
    const struct item *item = &plan->items.items[id];
    double bytes = 0;
    for (int i = 0; i < item->n_in; i++) {
        const struct value *value = item->in[i] < 0 ? NULL : &plan->values.items[item->in[i]];
        if (value && value->kind == VALUE_VARIABLE)
            return false;
        bytes += value ? bytes_of(value) : 0;
    }
    return !item->refs && bytes * INPUTS_SHARE <= plan_outgoing_bytes(plan, id);
}

/* Marks items behind the first one that depend on it and so move with it. Returns false if some of
 * them are more than views of its output. */
static bool find_moving(const struct plan *plan, const int *order, int n, bool *moves)
{
    bool good = true;
    moves[order[0]] = true;
    for (int i = 1; i < n && good; i++) {
        const struct item *item = &plan->items.items[order[i]];
        for (struct before b = {0}; plan_next_before(plan, order[i], &b);)
            moves[order[i]] |= moves[b.item];
        good = !moves[order[i]] ||
               (item->n_out == 1 && plan->values.items[item->out[0]].alias_input >= 0);
    }
    return good;
}

static double work_of(const struct plan *plan, int id)
{
    const struct node *node = plan->items.items[id].node;
    const struct cost_query query = {.node = node, .graph = plan->graph, .assume = 1};
    return node ? cost_of(&query).operations : 0;
}

/* The position after which half of the work behind `at` is done. */
static int halfway(const struct plan *plan, const int *order, int n, int at)
{
    double all = 0, done = 0;
    int to = at;
    for (int i = at + 1; i < n; i++)
        all += work_of(plan, order[i]);
    while (to + 1 < n && done < all / 2)
        done += work_of(plan, order[++to]);
    return to;
}

/* Moves the marked items behind the others up to `to`. */
static void move_behind(int *order, int to, const bool *moves)
{
    int n_moved = 0, n_left = 0;
    int *moved = mem_array((size_t)to + 1, sizeof *moved);
    for (int i = 0; i <= to; i++)
        if (moves[order[i]])
            moved[n_moved++] = order[i];
        else
            order[n_left++] = order[i];
    memcpy(order + n_left, moved, (size_t)n_moved * sizeof *order);
    mem_free(moved);
}

/* The item with more outgoing bytes than all others of the region together; -1: there is none. */
static int find_largest(const struct plan *plan, const int *order, int n)
{
    double most = 0, all = 0;
    int at = -1;
    for (int i = 0; i < n; i++) {
        double bytes = plan_outgoing_bytes(plan, order[i]);
        all += bytes;
        at = bytes > most ? i : at;
        most = bytes > most ? bytes : most;
    }
    return most > all - most && (all - most) * OTHERS_SHARE >= most ? at : -1;
}

/* The order lists one region after the other. */
static void put_late(struct plan *plan)
{
    for (int first = 0, next; first < plan->n_order; first = next) {
        const struct item *item = &plan->items.items[plan->order[first]];
        for (next = first;
             next < plan->n_order && plan->items.items[plan->order[next]].region == item->region;)
            next++;
        int *order = plan->order + first, n = next - first;
        int at = plan_has_order(plan, item->frame) ? -1 : find_largest(plan, order, n);
        if (at < 0 || !may_wait(plan, order[at]))
            continue;
        bool *moves = mem_array(plan->items.n + 1, sizeof *moves);
        if (find_moving(plan, order + at, n - at, moves))
            move_behind(order + at, halfway(plan, order, n, at) - at, moves);
        mem_free(moves);
    }
}

/* ---- all steps ---- */

int plan_find_regions(struct plan *plan, struct error *err)
{
    struct region_find f = {.plan = plan, .memory = ARENA_INIT};
    size_t n = plan->items.n + 1;
    int code = 0;
    f.keys = arena_array(&f.memory, n, sizeof *f.keys);
    f.arrival = arena_array(&f.memory, n, sizeof *f.arrival);
    f.over_arrival = arena_array(&f.memory, plan->frames.n, sizeof *f.over_arrival);
    int n_arrivals = plan->is_whole ? 0 : number_arrivals(&f);
    f.alone = plan->options.cut == CUT_ITEMS || n_arrivals > ARRIVALS_MAX;
    arrival_sets_init(&f.sets, f.alone ? 1 : n_arrivals);
    if (!plan->is_whole)
        code = find_by_keys(&f, err);
    find_by_order(&f);
    if (!code && !(code = plan_goes_on(plan, err)) && !(code = order_items(&f, err)) &&
        !(code = plan_goes_on(plan, err))) {
        put_late(plan);
        plan_find_counted(plan);
        plan_resolve_views(plan, true);
        fill_regions(plan);
        plan_place_memory(&f);
    }
    arrival_sets_release(&f.sets);
    arena_release(&f.memory);
    return code;
}
