/* SPDX-License-Identifier: Apache-2.0
 *
 * Regions: which items of a dynamic plan run together, one after the other in a fixed order, as all
 * of a whole plan do.
 *
 * A *point* is an item of which only running tells when, or whether, there is what it brings: an
 * asynchronous kernel, a Send, control flow. What it brings is an *arrival*. Of every item two sets
 * of arrivals are known: those that it waits for (`ready`) and those without which it is dead
 * (`dead`). Items of one frame for which both are equal become ready by the same arrival and are
 * alive together: they are a region.
 *
 * Regions cannot wait for each other in a circle: along an edge `ready` only grows, and where it
 * stays the same while `dead` does not, the level does. Memory goes from an item to one of another
 * region only if that waits for more arrivals than the first: so it awaits nothing new, and nothing
 * hangs whatever comes first.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/str.h"
#include "exec/plan/region_private.h"

#define ARRIVALS_MAX 8192 /* with more every item is a region */

/* ---- arrivals ---- */

/* A Switch brings one output or the other; what else brings anything brings all. */
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

/* slot -1: that the item is over. */
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
 * does. */
static void wait_after(struct region_find *f, struct key *key, int before, int id)
{
    const struct plan *plan = f->plan;
    int mine = plan->items.items[id].frame, its = plan->items.items[before].frame;
    int common = plan_common_frame(plan, its, mine);
    if (its == common && mine == common)
        wait_for_item(f, key, before, -1, false);
    else if (mine == common)
        wait_for_arrival(f, key, f->over_arrival[plan_frame_below(plan, common, its)], false);
}

static void level_after(struct region_find *f, struct key *key, int from, int id)
{
    const struct key *other = &f->keys[from];
    const struct item *before = &f->plan->items.items[from];
    bool is_near = !before->is_point && before->frame == f->plan->items.items[id].frame;
    int level = other->dead == key->dead ? other->level : other->level + 1;
    if (is_near && other->ready == key->ready && level > key->level)
        key->level = level;
}

/* A Merge goes on with one of its inputs; the others here may be alive when what they wait for is
 * not. */
static void find_key(struct region_find *f, int id, before_vec *befores)
{
    struct key *key = &f->keys[id];
    enum item_role role = f->plan->items.items[id].role;
    if (role == ROLE_MERGE)
        return;
    befores->n = 0;
    plan_collect_befores(f->plan, id, befores);
    for (size_t i = 0; i < befores->n; i++) {
        const struct before *before = &befores->items[i];
        if (before->is_after)
            wait_after(f, key, before->item, id);
        else
            wait_for_item(f, key, before->item, before->slot, true);
    }
    for (size_t i = 0; i < befores->n; i++)
        level_after(f, key, befores->items[i].item, id);
    if (role == ROLE_EXIT || role == ROLE_TRIGGER || role == ROLE_NEXT)
        key->dead = SET_EMPTY;
}

/* ---- regions ---- */

static int region_of_key(struct region_find *f, struct map *known, struct arena *names, int id)
{
    const struct key *key = &f->keys[id];
    int64_t region = (int64_t)f->plan->regions.n;
    const struct item *item = &f->plan->items.items[id];
    const char *name = arena_printf(names, "%d %d %d %d %d", item->frame, key->ready, key->dead,
                                    key->level, f->alone ? id : -1);
    if (map_get(known, name, &region))
        return (int)region;
    map_put(known, name, region);
    struct region fresh = {.frame = item->frame, .n_ready = item->n_ready, .level = key->level};
    vec_push(&f->plan->regions, fresh);
    return (int)region;
}

static void group(struct region_find *f, const int *order, int n_order)
{
    struct map known = MAP_INIT;
    struct arena names = ARENA_INIT;
    for (int i = 0; i < n_order; i++) {
        struct item *item = &f->plan->items.items[order[i]];
        item->n_ready = arrival_set_count(&f->sets, f->keys[order[i]].ready);
        item->region = item->is_point ? -1 : region_of_key(f, &known, &names, order[i]);
    }
    map_release(&known);
    arena_release(&names);
}

struct ranking {
    int region, n_ready, level;
};

static int by_arrivals(const void *a, const void *b)
{
    const struct ranking *x = a, *y = b;
    if (x->n_ready != y->n_ready)
        return x->n_ready < y->n_ready ? -1 : 1;
    if (x->level != y->level)
        return x->level < y->level ? -1 : 1;
    return x->region < y->region ? -1 : 1;
}

/* By item: where its region comes among all. An edge leads to one with more arrivals. */
static int *rank_regions(struct region_find *f)
{
    size_t n = f->plan->regions.n;
    struct ranking *all = mem_array(n + 1, sizeof *all);
    int *rank = mem_array(f->plan->items.n + 1, sizeof *rank);
    for (size_t i = 0; i < n; i++) {
        const struct region *region = &f->plan->regions.items[i];
        all[i] = (struct ranking){(int)i, region->n_ready, region->level};
    }
    if (n)
        qsort(all, n, sizeof *all, by_arrivals);
    for (size_t i = 0; i < n; i++)
        f->plan->regions.items[all[i].region].rank = (int)i;
    for (size_t i = 0; i < f->plan->items.n; i++) {
        const struct item *item = &f->plan->items.items[i];
        bool is_in = item->region >= 0 && !item->removed;
        rank[i] = is_in ? f->plan->regions.items[item->region].rank : -1;
    }
    mem_free(all);
    return rank;
}

/* The items of each frame's regions, one region after the other. */
static int order_items(struct region_find *f, int *order, struct error *err)
{
    int *rank = rank_regions(f), n_order;
    int code = plan_sort(f->plan, rank, order, &n_order, err);
    if (!code)
        region_put_late(f, order, n_order);
    for (int i = 0; !code && i < n_order; i++) {
        struct item *item = &f->plan->items.items[order[i]];
        struct region *region = &f->plan->regions.items[item->region];
        struct plan_frame *frame = &f->plan->frames.items[item->frame];
        struct region_item at = {.item = order[i]};
        if (!region->n++)
            region->first = (int)frame->order.n;
        item->position = (int)frame->order.n;
        vec_push(&frame->order, at);
        item->head = frame->order.items[region->first].item;
    }
    mem_free(rank);
    return code;
}

/* ---- the whole ---- */

int region_find(struct plan *plan, struct error *err)
{
    struct region_find f = {.plan = plan};
    before_vec befores = VEC_INIT;
    size_t n = plan->items.n + 1;
    f.keys = mem_array(n, sizeof *f.keys);
    f.arrival = mem_array(n, sizeof *f.arrival);
    f.over_arrival = mem_array(plan->frames.n, sizeof *f.over_arrival);
    int *order = mem_array(n, sizeof *order), n_order, n_arrivals = number_arrivals(&f);
    f.alone = plan->options.cut == CUT_ITEMS || n_arrivals > ARRIVALS_MAX;
    arrival_sets_init(&f.sets, f.alone ? 1 : n_arrivals);
    int code = plan_sort(plan, NULL, order, &n_order, err);
    for (int i = 0; !code && !f.alone && i < n_order; i++)
        find_key(&f, order[i], &befores);
    if (!code) {
        group(&f, order, n_order);
        code = order_items(&f, order, err);
    }
    if (!code)
        region_place(&f);
    vec_release(&befores);
    arrival_sets_release(&f.sets);
    mem_free(order);
    mem_free(f.over_arrival);
    mem_free(f.arrival);
    mem_free(f.keys);
    return code;
}
