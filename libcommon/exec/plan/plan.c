/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/plan/plan.h"

#include <string.h>

#include "base/memory.h"
#include "exec/device/arenas.h"
#include "exec/device/pool.h"
#include "exec/plan/plan_steps.h"

static const char *op_of(struct plan *plan, const struct item *item)
{
    const struct attr_value *behind = item->node ? node_attr(item->node, "epilogue") : NULL;
    const struct attr_value *ops = item->node && !behind ? node_attr(item->node, "ops") : behind;
    const char *text = item->node ? item->node->op->def->name : item->kernel;
    if (ops)
        text = behind ? text + strlen("Fused") : ops->strings[0];
    for (int i = !behind; ops && i < ops->n; i++)
        text = arena_printf(&plan->memory, "%s+%s", text, ops->strings[i]);
    return text;
}

/* When all else is known of the item: finds what must be done before its kernel runs, and whether
 * it uses the memory of a device. */
static void finish_item(struct plan *plan, struct item *item)
{
    bool any = !item->removed && !plan->options.device->is_host;
    for (int k = 0; any && k < item->n_in; k++) {
        int from = plan_maker(plan, item, k);
        item->uses_copies |= from >= 0 && plan->items.items[from].builtin == BUILTIN_COPY_IN;
        plan->is_on_device |= item->in[k] >= 0 && plan->values.items[item->in[k]].on_device;
    }
    for (int k = 0; any && k < item->n_out; k++)
        plan->is_on_device |= plan->values.items[item->out[k]].on_device;
    item->is_prepared = item->uses_copies || item->seen;
    vec_each(use, &item->uses) {
        item->is_prepared |= !use->may_lack;
    }
    item->op = op_of(plan, item);
}

static int compile(struct plan *plan, const struct plan_request *request, struct error *err)
{
    plan->n_fetches = request->n_fetches;
    struct edge *fetches =
        arena_array(&plan->memory, (size_t)request->n_fetches + 1, sizeof *fetches);
    int code = plan_make_graph(plan, request, fetches, err);
    if (!code)
        code = plan_find_frames(plan, fetches, err);
    if (!code)
        code = plan_prepare(plan, fetches, err);
    if (!code && !plan->is_whole) {
        plan_resolve_views(plan, false);
        plan_find_roles(plan);
    }
    if (!code)
        code = plan_order_variables(plan, err);
    if (code || plan_goes_on(plan, err))
        return err->code;
    if ((code = plan_find_regions(plan, err)))
        return code;
    plan_connect(plan);
    vec_each(item, &plan->items) {
        finish_item(plan, item);
    }
    plan_find_segments(plan);
    return code;
}

int plan_new(const struct graph *graph, const struct plan_options *options,
             const struct plan_request *request, struct plan **result, struct error *err)
{
    struct plan *plan = mem_alloc(sizeof *plan);
    plan->source = graph;
    plan->options = *options;
    if (options->device->kernels)
        plan->options.kernels = options->device->kernels;
    if (!options->arenas)
        plan->options.arenas = plan->own_arenas = arenas_new();
    int code = compile(plan, request, err);
    plan->options.step = NULL;
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

void plan_release(struct plan *plan)
{
    if (plan->faults.n)
        fault_source_remove(&plan->faults);
    vec_each(item, &plan->items) {
        plan_release_state(item);
    }
    for (size_t i = 0; i < plan->values.n; i++)
        if (plan->values.items[i].kind == VALUE_CONSTANT)
            tensor_release(&plan->values.items[i].constant);
    pool_free(plan->pools[0]);
    pool_free(plan->pools[1]);
    frames_free(plan->graph_frames);
    vec_release(&plan->items);
    vec_release(&plan->values);
    fusion_release(&plan->fused);
    graph_free(plan->pruned);
    edge_map_release(&plan->fed);
    arena_release(&plan->memory);
    arenas_free(plan->own_arenas);
    mem_free(plan);
}
