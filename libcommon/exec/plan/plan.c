/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/plan/plan.h"

#include <string.h>

#include "base/memory.h"
#include "exec/device/arenas.h"
#include "exec/device/pool.h"
#include "exec/plan/plan_steps.h"
#include "exec/plan/region.h"

static bool all_cheap(const struct plan *plan)
{
    for (int i = 0; i < plan->n_order; i++)
        if (!item_is_cheap(plan, &plan->items.items[plan->order[i]]))
            return false;
    return true;
}

static int compile(struct plan *plan, const struct plan_request *request, struct error *err)
{
    plan->n_fetches = request->n_fetches;
    struct edge *fetches =
        arena_array(&plan->memory, (size_t)request->n_fetches + 1, sizeof *fetches);
    int code = plan_make_graph(plan, request, fetches, err);
    if (!code)
        code = plan_goes_on(plan, err);
    if (!code) {
        plan_fuse(plan, fetches);
        code = plan_take_loops(plan, fetches, err);
    }
    for (int i = 0; i < plan->n_feeds && !code; i++)
        if (plan->feed_nodes[i] >= 0)
            edge_map_add(&plan->fed, (struct edge){plan->feed_nodes[i], 0}, i);
    if (!code)
        code = plan_prepare(plan, fetches, err);
    if (!code && !plan->is_whole) {
        plan_resolve_views(plan);
        plan_take_in_constants(plan);
        code = dynamic_new(plan, err);
    }
    if (!code)
        code = plan_order_variables(plan, err);
    if (code || plan_goes_on(plan, err))
        return err->code;
    plan_find_checks(plan);
    plan_find_copies(plan);
    if (!plan->is_whole) {
        code = dynamic_connect(plan, err);
    } else if (!(code = plan_schedule(plan, err)) && !(code = plan_goes_on(plan, err))) {
        plan_find_counted(plan);
        plan_resolve_views(plan);
        plan_join_branches(plan);
        plan_place_memory(plan, &(struct placing){.order = plan->order, .n_order = plan->n_order},
                          plan->arena_bytes);
        dynamic_one_region(plan);
        plan_find_locks(plan);
        plan_find_captured(plan);
    }
    plan->is_cheap = plan->is_whole && all_cheap(plan);
    for (size_t i = 0; i < plan->items.n; i++) {
        struct item *item = &plan->items.items[i];
        item->is_prepared = item->n_checked || item->uses_copies || item->seen;
    }
    return code;
}

static struct plan *plan_alloc(const struct graph *graph, const struct plan_options *options)
{
    struct plan *plan = mem_alloc(sizeof *plan);
    plan->source = graph;
    plan->options = *options;
    if (options->device->kernels)
        plan->options.kernels = options->device->kernels;
    if (!options->arenas)
        plan->options.arenas = plan->own_arenas = arenas_new();
    return plan;
}

/* As it was in the beginning, but that it knows which loops have points. */
static struct plan *plan_anew(struct plan *plan, const struct plan_options *options)
{
    struct plan *fresh = plan_alloc(plan->source, options);
    for (size_t i = 0; i < plan->loops.n; i++) { /* one has points: do others, too? */
        struct error unheard = ERROR_INIT;
        if (plan->loops.items[i]->condition)
            continue;
        plan_compile_while(plan, plan->loops.items[i], &unheard);
        while_free(plan->loops.items[i]);
    }
    fresh->kept = plan->kept;
    memset(&plan->kept, 0, sizeof plan->kept);
    plan_release(plan);
    return fresh;
}

int plan_new(const struct graph *graph, const struct plan_options *options,
             const struct plan_request *request, struct plan **result, struct error *err)
{
    struct plan *plan = plan_alloc(graph, options);
    int code = compile(plan, request, err);
    while (code && plan->keeps_more) {
        plan = plan_anew(plan, options);
        *err = (struct error)ERROR_INIT;
        code = compile(plan, request, err);
    }
    plan->options.cancelled = plan->options.stopped = NULL;
    if (!code) {
        plan->faults.n = options->device->is_host ? 0 : (uint32_t)plan->items.n;
        plan->faults.explain = item_explain_fault;
        if (plan->faults.n)
            fault_source_add(&plan->faults);
    } else {
        plan_release(plan);
        plan = NULL;
    }
    *result = plan;
    return code;
}

static void item_release(struct item *item)
{
    plan_release_state(item);
    vec_release(&item->after);
    vec_release(&item->follows);
    vec_release(&item->wishes);
}

static void dynamic_release(struct dynamic *d)
{
    for (size_t i = 0; d && i < d->frames.n; i++) {
        vec_release(&d->frames.items[i].items);
        vec_release(&d->frames.items[i].roots);
        vec_release(&d->frames.items[i].exits);
        vec_release(&d->frames.items[i].over);
        vec_release(&d->frames.items[i].order);
    }
    for (int i = 0; d && i < d->n_items; i++) {
        vec_release(&d->items[i].locks);
        vec_release(&d->items[i].gives);
    }
    if (d) {
        vec_release(&d->all.locks);
        vec_release(&d->frames);
        vec_release(&d->kept);
        vec_release(&d->regions);
    }
    mem_free(d);
}

void plan_release(struct plan *plan)
{
    if (!plan)
        return;
    if (plan->faults.n)
        fault_source_remove(&plan->faults);
    dynamic_release(plan->dynamic);
    for (size_t i = 0; i < plan->items.n; i++)
        item_release(&plan->items.items[i]);
    for (size_t i = 0; i < plan->values.n; i++)
        if (plan->values.items[i].kind == VALUE_CONSTANT)
            tensor_release(&plan->values.items[i].constant);
    pool_free(plan->pool);
    pool_free(plan->host_pool);
    for (size_t i = 0; i < plan->loops.n; i++) {
        while_free(plan->loops.items[i]);
        graph_free(plan->loops.items[i]->graph);
    }
    vec_release(&plan->loops);
    vec_release(&plan->kept);
    vec_release(&plan->counted);
    vec_release(&plan->reads);
    vec_release(&plan->items);
    vec_release(&plan->values);
    graph_free(plan->graph);
    edge_map_release(&plan->fed);
    for (size_t i = 0; i < plan->wholes.n; i++)
        graph_free(plan->wholes.items[i]);
    vec_release(&plan->wholes);
    mem_free(plan->dump);
    arena_release(&plan->memory);
    arenas_free(plan->own_arenas);
    mem_free(plan);
}

bool plan_is_whole(const struct plan *plan)
{
    return plan->is_whole;
}

/* Loops run one after the other, but keep what they have. */
size_t plan_peak_bytes(const struct plan *plan)
{
    size_t bytes = plan->arena_bytes[0] + plan->arena_bytes[1];
    for (size_t i = 0; i < plan->loops.n; i++)
        bytes += plan_peak_bytes(plan->loops.items[i]->condition) +
                 plan_peak_bytes(plan->loops.items[i]->body);
    return bytes;
}

static void describe(const struct plan *plan, const struct item *item, struct plan_item *out)
{
    *out = (struct plan_item){.node = item->node,
                              .name = item->name,
                              .kernel = item->kernel,
                              .arena_offset = -1,
                              .live_from = -1,
                              .live_to = -1};
    if (!item->n_out)
        return;
    const struct value *value = &plan->values.items[item->out[0]];
    int64_t bytes = shape_bytes(&value->shape, value->type);
    out->arena_offset = value->offset;
    out->on_host = !value->on_device && !plan->options.device->is_host;
    out->bytes = bytes < 0 ? 0 : (size_t)bytes;
    out->live_from = value->live_from;
    out->live_to = value->live_to;
}

int plan_n_regions(const struct plan *plan)
{
    return region_count(plan);
}

static int count_items(const struct plan *plan)
{
    int n = plan->n_order;
    for (size_t i = 0; i < plan->loops.n; i++)
        n += count_items(plan->loops.items[i]->condition) + count_items(plan->loops.items[i]->body);
    return n;
}

static int describe_all(struct plan *plan, struct plan_item *out, int first);

/* Behind its item, which has them done. */
static int describe_loop(const struct while_loop *loop, const struct plan_item *item,
                         struct plan_item *out, int first)
{
    int n = describe_all(loop->condition, out, first);
    n += describe_all(loop->body, out + n, first + n);
    for (int i = 0; i < n; i++)
        out[i].region = item->region;
    return n;
}

/* From position `first` of the whole list on; items come later where loops are before them. */
static int describe_all(struct plan *plan, struct plan_item *out, int first)
{
    int n = plan->n_order, at = 0;
    struct plan_item *own = mem_array((size_t)n + 1, sizeof *own);
    int *place = mem_array((size_t)n + 1, sizeof *place);
    for (int i = 0; i < n; i++)
        describe(plan, &plan->items.items[plan->order[i]], &own[i]);
    region_describe(plan, own);
    for (int i = 0; i < n; i++) {
        const struct item *item = &plan->items.items[plan->order[i]];
        place[i] = at;
        out[at++] = own[i];
        if (item->builtin == BUILTIN_LOOP)
            at += describe_loop(item->state, &own[i], out + at, first + at);
    }
    for (int i = 0; i < n; i++) {
        struct plan_item *item = &out[place[i]];
        item->live_from = item->live_from < 0 ? -1 : first + place[item->live_from];
        item->live_to = item->live_to < 0 ? -1 : first + place[item->live_to];
    }
    mem_free(own);
    mem_free(place);
    return at;
}

int plan_items(const struct plan *plan, const struct plan_item **items)
{
    struct plan *mutable = (struct plan *)(uintptr_t)plan;
    if (!plan->order)
        region_list(mutable);
    mem_free(mutable->dump);
    mutable->dump = mem_array((size_t)count_items(plan) + 1, sizeof *plan->dump);
    *items = plan->dump;
    return describe_all(mutable, mutable->dump, 0);
}
