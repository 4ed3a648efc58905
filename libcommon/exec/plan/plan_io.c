/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/plan/plan_io.h"

#include <stdlib.h>

#include "base/memory.h"
#include "exec/plan/plan_steps.h"

/* ---- items ---- */

struct listed {
    int n_ready, place, item;
};

static int by_readiness(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;
    return x->n_ready != y->n_ready ? x->n_ready - y->n_ready : x->place - y->place;
}

/* Lists the item, and after a loop all the items that it repeats. */
static int list_item(const struct plan *plan, int id, int *list)
{
    const struct item *item = &plan->items.items[id];
    const struct plan_frame *loop = item->builtin == BUILTIN_LOOP ? item->state : NULL;
    int n = 0;
    list[n++] = id;
    for (size_t i = 0; loop && i < loop->order.n; i++)
        n += list_item(plan, loop->order.items[i].item, list + n);
    return n;
}

/* Lists regions with fewer arrivals first, as in the plan's order, and async ops after the regions
 * that they may wait for. */
static int list_all(const struct plan *plan, int *list)
{
    struct listed *all = mem_array(2 * plan->items.n + 1, sizeof *all);
    int n_all = 0, n = 0;
    for (int i = 0; i < plan->n_order + (int)plan->items.n; i++) {
        int id = i < plan->n_order ? plan->order[i] : i - plan->n_order;
        const struct item *item = &plan->items.items[id];
        if (!item->removed && !plan_is_repeated(plan, item) &&
            plan->regions.items[item->region].is_point == (i >= plan->n_order))
            all[n_all++] = (struct listed){item->n_ready, i, id};
    }
    qsort(all, (size_t)n_all, sizeof *all, by_readiness);
    for (int i = 0; i < n_all; i++)
        n += list_item(plan, all[i].item, list + n);
    mem_free(all);
    return n;
}

/* ---- as a record ---- */

/* `at`: by item, its index in the list. */
static void pack_item(msgpack_packer *packer, const struct plan *plan, int id, const int *at)
{
    const struct item *item = &plan->items.items[id], *outer = item;
    const struct region_item *order = plan->frames.items[item->frame].order.items;
    const struct value *value = item->n_out ? &plan->values.items[item->out[0]] : NULL;
    const struct attr_value *behind = item->node ? node_attr(item->node, "epilogue") : NULL;
    const struct attr_value *ops = behind || !item->node ? behind : node_attr(item->node, "ops");
    int64_t bytes = value ? shape_bytes(&value->shape, value->type) : 0;
    while (plan_is_repeated(plan, outer))
        outer = &plan->items.items[plan->frames.items[outer->frame].item];
    int region = plan->regions.items[outer->region].rank; /* -1: of an async op */
    bool on_host = value && !value->on_device && !plan->options.device->is_host;
    bool has_region = !plan->is_whole, lives = value && region >= 0;
    msgpack_pack_map(packer, 6 + on_host + has_region + (ops != NULL));
    if (ops) {
        pack_key_array(packer, "ops", (size_t)ops->n + (behind != NULL));
        if (behind)
            pack_text(packer, item->node->op->def->name);
        for (int i = 0; i < ops->n; i++)
            pack_text(packer, ops->strings[i]);
    }
    pack_key_text(packer, "node", item->name);
    pack_key_text(packer, "kernel", item->kernel);
    pack_key_int(packer, "offset", value ? value->offset : -1);
    if (on_host)
        pack_key_bool(packer, "host", true);
    pack_key_uint(packer, "bytes", bytes < 0 ? 0 : (uint64_t)bytes);
    pack_key_int(packer, "from", lives ? at[id] : -1);
    pack_key_int(packer, "to", lives ? at[order[value->live_to].item] : -1);
    if (has_region)
        pack_key_int(packer, "region", region);
}

static void pack_feeds(msgpack_packer *packer, const struct plan *plan)
{
    struct str text = STR_INIT;
    msgpack_pack_array(packer, (size_t)plan->n_feeds);
    for (int i = 0; i < plan->n_feeds; i++) {
        const struct tensor *value = &plan->feed_values[i];
        str_clear(&text);
        graph_print_edge(&text, plan->source, plan->feeds[i]);
        str_append_char(&text, ' ');
        shape_print_typed(&text, value->type, &value->shape);
        pack_text(packer, str_text(&text));
    }
    str_release(&text);
}

int plan_write(struct stream_writer *writer, const struct plan *plan, const char *run,
               struct error *err)
{
    int *list = mem_array(2 * plan->items.n + 1, sizeof *list), *at = list + plan->items.n;
    int n = list_all(plan, list), n_regions = 0;
    size_t peak = 0;
    for (int i = 0; i < n; i++)
        at[list[i]] = i;
    /* A region within a loop that is an item counts as part of the one that contains the loop's
     * item, as does its memory. */
    vec_each(region, &plan->regions) {
        n_regions += !region->is_point && !plan->frames.items[region->frame].is_item;
    }
    vec_each(frame, &plan->frames) {
        peak += frame->is_item ? 0 : frame->arena_bytes[0] + frame->arena_bytes[1];
    }
    msgpack_packer *packer = stream_begin(writer, RECORD_PLAN, 9);
    pack_key_text(packer, "run", run);
    pack_key_uint(packer, "nodes", plan->graph->nodes.n);
    pack_key_uint(packer, "of", plan->source->nodes.n);
    pack_key_bool(packer, "static", plan->is_whole);
    pack_key_int(packer, "regions", n_regions);
    pack_key_uint(packer, "peak", peak);
    pack_key_text(packer, "choice",
                  plan->options.device->choice ? plan->options.device->choice : "");
    pack_key(packer, "feeds");
    pack_feeds(packer, plan);
    pack_key_array(packer, "items", (size_t)n);
    for (int i = 0; i < n; i++)
        pack_item(packer, plan, list[i], at);
    mem_free(list);
    return stream_write(writer, NULL, 0, err);
}
