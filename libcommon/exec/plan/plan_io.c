/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/plan/plan_io.h"

#include "exec/plan/plan_steps.h"

/* The ops that a node of several stands for: its attribute of fusion, and what is before them. */
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
    const struct attr_value *ops = ops_of(graph_find(plan->graph, item->name), &first);
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
        const struct plan_feed *feed = &plan->feeds[i];
        str_clear(&text);
        graph_print_edge(&text, plan->source, feed->edge);
        str_append_char(&text, ' ');
        shape_print_typed(&text, feed->type, &feed->shape);
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
