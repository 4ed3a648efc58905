/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/plan/plan_io.h"

#include <stdlib.h>

#include "base/memory.h"
#include "exec/plan/plan_steps.h"

bool plan_is_whole(const struct plan *plan)
{
    return plan->is_whole;
}

/* A region within a loop that is an item has no number of its own; it counts as part of the region
 * that contains the loop's item. */
int plan_n_regions(const struct plan *plan)
{
    int n = 0;
    vec_each(region, &plan->regions) {
        n += !region->is_point && !plan->frames.items[region->frame].is_item;
    }
    return n;
}

size_t plan_peak_bytes(const struct plan *plan)
{
    size_t bytes = 0;
    for (size_t i = 0; i < plan->frames.n; i++)
        if (!plan->frames.items[i].is_item)
            bytes += plan->frames.items[i].arena_bytes[0] + plan->frames.items[i].arena_bytes[1];
    return bytes;
}

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

/* The region that contains the item, or the loop around it; -1: the item is an async op. */
static int region_of(const struct plan *plan, const struct item *item)
{
    while (plan_is_repeated(plan, item))
        item = &plan->items.items[plan->frames.items[item->frame].item];
    return plan->regions.items[item->region].rank;
}

/* `at`: by item, its index in the list. */
static struct plan_item describe(const struct plan *plan, const struct item *item, const int *at)
{
    const struct region_item *order = plan->frames.items[item->frame].order.items;
    struct plan_item shown = {.node = item->node,
                              .name = item->name,
                              .kernel = item->kernel,
                              .arena_offset = -1,
                              .live_from = -1,
                              .live_to = -1,
                              .region = region_of(plan, item)};
    const struct value *value = item->n_out ? &plan->values.items[item->out[0]] : NULL;
    int64_t bytes = value ? shape_bytes(&value->shape, value->type) : 0;
    shown.bytes = bytes < 0 ? 0 : (size_t)bytes;
    if (value) {
        shown.arena_offset = value->offset;
        shown.on_host = !value->on_device && !plan->options.device->is_host;
    }
    if (value && shown.region >= 0) {
        shown.live_from = at[item - plan->items.items];
        shown.live_to = at[order[value->live_to].item];
    }
    return shown;
}

int plan_items(const struct plan *plan, const struct plan_item **items)
{
    struct plan *mutable = (struct plan *)(uintptr_t)plan;
    int *list = mem_array(2 * plan->items.n + 1, sizeof *list), *at = list + plan->items.n;
    int n = list_all(plan, list);
    mem_free(mutable->dump);
    mutable->dump = mem_array((size_t)n + 1, sizeof *plan->dump);
    for (int i = 0; i < n; i++)
        at[list[i]] = i;
    for (int i = 0; i < n; i++)
        mutable->dump[i] = describe(plan, &plan->items.items[list[i]], at);
    mem_free(list);
    *items = plan->dump;
    return n;
}

/* ---- as a record ---- */

/* The ops that were fused into a node: the attribute, and the op before those (or NULL). */
static const struct attr_value *ops_of(const struct node *node, const char **first)
{
    const struct attr_value *behind = node ? node_attr(node, "epilogue") : NULL;
    *first = behind ? node->op->def->name : NULL;
    return behind || !node ? behind : node_attr(node, "ops");
}

static void pack_ops(msgpack_packer *packer, const struct attr_value *ops, const char *first)
{
    pack_key_array(packer, "ops", (size_t)ops->n + (first != NULL));
    if (first)
        pack_text(packer, first);
    for (int i = 0; i < ops->n; i++)
        pack_text(packer, ops->strings[i]);
}

static void pack_item(msgpack_packer *packer, const struct plan *plan, const struct plan_item *item)
{
    const char *first;
    const struct attr_value *ops = ops_of(item->node, &first);
    bool has_region = !plan->is_whole;
    msgpack_pack_map(packer, 6 + item->on_host + has_region + (ops != NULL));
    if (ops)
        pack_ops(packer, ops, first);
    pack_key_text(packer, "node", item->name);
    pack_key_text(packer, "kernel", item->kernel);
    pack_key_int(packer, "offset", item->arena_offset);
    if (item->on_host)
        pack_key_bool(packer, "host", true);
    pack_key_uint(packer, "bytes", item->bytes);
    pack_key_int(packer, "from", item->live_from);
    pack_key_int(packer, "to", item->live_to);
    if (has_region)
        pack_key_int(packer, "region", item->region);
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
    const struct plan_item *items;
    int n = plan_items(plan, &items);
    msgpack_packer *packer = stream_begin(writer, RECORD_PLAN, 9);
    pack_key_text(packer, "run", run);
    pack_key_uint(packer, "nodes", plan->graph->nodes.n);
    pack_key_uint(packer, "of", plan->source->nodes.n);
    pack_key_bool(packer, "static", plan->is_whole);
    pack_key_int(packer, "regions", plan_n_regions(plan));
    pack_key_uint(packer, "peak", plan_peak_bytes(plan));
    pack_key_text(packer, "choice",
                  plan->options.device->choice ? plan->options.device->choice : "");
    pack_key(packer, "feeds");
    pack_feeds(packer, plan);
    pack_key_array(packer, "items", (size_t)n);
    for (int i = 0; i < n; i++)
        pack_item(packer, plan, &items[i]);
    return stream_write(writer, NULL, 0, err);
}
