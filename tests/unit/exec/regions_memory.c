/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes that regions share are ordered by a path: in whatever order items run, none writes where
 * another value is still read. The plans are of random graphs over several devices, and are not
 * run. OVERLAPS is how many graphs (default 200), OVERLAPS_SEED the first one's seed.
 */
#include "lib/session.h"

#include "base/memory.h"
#include "exec/plan/plan_private.h"
#include "lib/cut.h"
#include "lib/plan_items.h"
#include "lib/random_graph.h"

#define NODES_LEAST 30
#define NODES_MOST 130

/* ---- the order of items ---- */

typedef VEC(int) int_vec;

struct paths {
    const struct plan *plan;
    bool **after; /* [a][b]: item b begins after a is over */
};

/* A Merge needs only one of its inputs, and Next leads to another iteration. */
static bool waits_for(const struct plan *plan, int from, const struct out_edge *edge)
{
    bool is_one_of_several = plan->items.items[edge->item].role == ROLE_MERGE && edge->input >= 0;
    return !is_one_of_several && plan->items.items[from].role != ROLE_NEXT;
}

static void reach(bool *known, int_vec *todo, int id)
{
    if (!known[id])
        vec_push(todo, id);
    known[id] = true;
}

/* A region begins with its head, which waits for all inputs of the region. */
static void find_after(const struct plan *plan, int from, bool *known)
{
    int_vec todo = VEC_INIT;
    vec_push(&todo, from);
    while (todo.n) {
        int id = vec_pop(&todo);
        const struct item *item = &plan->items.items[id];
        const struct plan_frame *frame = &plan->frames.items[item->frame];
        const struct region *region = item->region < 0 ? NULL : &plan->regions.items[item->region];
        if (region && item->position + 1 < region->first + region->n)
            reach(known, &todo, frame->order.items[item->position + 1].item);
        vec_each(edge, &item->edges) {
            if (waits_for(plan, id, edge))
                reach(known, &todo, plan->items.items[edge->item].head);
        }
    }
    vec_release(&todo);
}

static void paths_open(struct paths *paths, const struct plan *plan)
{
    size_t n = plan->items.n;
    paths->plan = plan;
    paths->after = mem_array(n + 1, sizeof *paths->after);
    for (size_t i = 0; i < n; i++) {
        paths->after[i] = mem_array(n + 1, sizeof **paths->after);
        if (!plan->items.items[i].removed)
            find_after(plan, (int)i, paths->after[i]);
    }
}

static void paths_close(struct paths *paths)
{
    for (size_t i = 0; i < paths->plan->items.n; i++)
        mem_free(paths->after[i]);
    mem_free(paths->after);
}

/* ---- the users of bytes ---- */

struct bytes {
    int value; /* -1: scratch */
    int frame, item;
    bool on_device;
    int64_t offset, n;
    int_vec users;
};

typedef VEC(struct bytes) bytes_vec;

static void add_users(const struct plan *plan, struct bytes *b)
{
    for (size_t i = 0; i < plan->items.n; i++) {
        const struct item *item = &plan->items.items[i];
        bool uses = (int)i == b->item;
        for (int k = 0; k < item->n_in && b->value >= 0; k++)
            uses |= item->in[k] >= 0 && plan_root_value(plan, item->in[k]) == b->value;
        if (uses && !item->removed)
            vec_push(&b->users, (int)i);
    }
}

static void find_bytes(const struct plan *plan, bytes_vec *all)
{
    for (size_t i = 0; i < plan->items.n; i++) {
        const struct item *item = &plan->items.items[i];
        bool has_scratch = item->region >= 0; /* other items take it from the pool */
        struct bytes b = {.frame = item->frame, .item = (int)i, .users = VEC_INIT};
        for (int k = 0; k <= item->n_out && !item->removed; k++) {
            const struct value *value = k < item->n_out ? &plan->values.items[item->out[k]] : NULL;
            b.value = value ? item->out[k] : -1;
            b.on_device = value ? value->on_device : !plan->options.device->is_host;
            b.offset = value ? value->offset : item->scratch_offset;
            b.n = value         ? shape_bytes(&value->shape, value->type)
                  : has_scratch ? (int64_t)item->scratch_bytes
                                : 0;
            if (b.n > 0 && b.offset >= 0 && (!value || value->alias_of < 0))
                vec_push(all, b);
        }
    }
    for (size_t i = 0; i < all->n; i++)
        add_users(plan, &all->items[i]);
}

static bool overlap(const struct bytes *a, const struct bytes *b)
{
    return a->frame == b->frame && a->on_device == b->on_device && a->offset < b->offset + b->n &&
           b->offset < a->offset + a->n;
}

/* Returns whether the item makes b in place of a. */
static bool takes_over(const struct plan *plan, int id, const struct bytes *a,
                       const struct bytes *b)
{
    const struct item *item = &plan->items.items[id];
    return a->value >= 0 && item->output_over && b->value == item->out[item->output_over - 1] &&
           id == b->item && plan_root_value(plan, item->in[item->output_from]) == a->value;
}

static bool is_over_before(const struct paths *paths, const struct bytes *a, const struct bytes *b)
{
    bool is = true;
    for (size_t i = 0; i < a->users.n; i++)
        is = is && (paths->after[a->users.items[i]][b->item] ||
                    takes_over(paths->plan, a->users.items[i], a, b));
    return is;
}

/* ---- random graphs ---- */

struct task_reply {
    uint64_t seed;
    int n, n_apart; /* overlapping pairs; those in two regions */
};

static void check_pair(const struct paths *paths, const struct bytes *a, const struct bytes *b,
                       struct task_reply *found)
{
    const struct plan *plan = paths->plan;
    if (!overlap(a, b))
        return;
    if (!is_over_before(paths, a, b) && !is_over_before(paths, b, a))
        fail_msg("OVERLAPS_SEED=%llu: '%s' and '%s' have the same bytes at the same time",
                 (unsigned long long)found->seed, plan->items.items[a->item].name,
                 plan->items.items[b->item].name);
    found->n++;
    found->n_apart += plan->items.items[a->item].region != plan->items.items[b->item].region;
}

static void check_plan(const struct plan *plan, struct task_reply *found)
{
    struct paths paths;
    bytes_vec all = VEC_INIT;
    paths_open(&paths, plan);
    find_bytes(plan, &all);
    for (size_t i = 0; i < all.n; i++)
        for (size_t k = i + 1; k < all.n; k++)
            check_pair(&paths, &all.items[i], &all.items[k], found);
    for (size_t i = 0; i < all.n; i++)
        vec_release(&all.items[i].users);
    vec_release(&all);
    paths_close(&paths);
}

/* Wants every node. */
static void check_parts(const struct cut_graph *cut, struct task_reply *found)
{
    struct session_options options = {.plan = {.kernels = ops_kernels(),
                                               .device = cut_devices()[0],
                                               .threads = 1,
                                               .cut = CUT_REGIONS},
                                      .devices = cut_devices(),
                                      .n_devices = CUT_DEVICES};
    struct session *session = session_new(cut->joined, &options);
    int *targets = mem_array(cut->joined->nodes.n + 1, sizeof *targets);
    struct plan_request call = {.targets = targets};
    struct plan *const *plans;
    int n;
    struct error err = ERROR_INIT;
    for (size_t i = 0; i < cut->joined->nodes.n; i++)
        targets[call.n_targets++] = (int)i;
    if (!session_plans(session, &call, &plans, &n, &err))
        for (int i = 0; i < n; i++)
            if (!plan_is_whole(plans[i]))
                check_plan(plans[i], found);
    session_free(session);
    mem_free(targets);
}

static void check_random(struct task_reply *found)
{
    uint64_t seed = found->seed;
    int n = NODES_LEAST + (int)(seed % (NODES_MOST - NODES_LEAST));
    struct graph *graph = random_graph(ops_registry(), seed, n, OP_SOURCE, true);
    struct cut_graph cut;
    random_graph_add_controls(graph, seed);
    cut_place(graph, seed, 2 + (int)(seed % (CUT_DEVICES - 1)));
    cut_open(&cut, graph);
    check_parts(&cut, found);
    cut_close(&cut);
    graph_free(graph);
}

static void what_shares_bytes_has_an_order(void **state)
{
    struct seed_range seeds = seeds_of("OVERLAPS", 200);
    struct task_reply found = {0};
    (void)state;
    for (int i = 0; i < seeds.n; i++) {
        found.seed = seeds.first + (uint64_t)i;
        check_random(&found);
    }
    assert_true(seeds.given || (found.n > 300 && found.n_apart > 150));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_shares_bytes_has_an_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
