/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing a graph record: one map per node, without empty fields.
 */

#include "graph/graph_io.h"

struct graph_writer {
    const struct graph *graph;
    msgpack_packer *packer;
    struct str text; /* scratch */
    VEC(struct named_tensor) tensors;
};

static void pack_edge(struct graph_writer *w, struct edge edge)
{
    str_clear(&w->text);
    graph_print_edge(&w->text, w->graph, edge);
    pack_text(w->packer, str_text(&w->text));
}

static void pack_item(msgpack_packer *packer, const struct attr_value *v)
{
    if (v->kind == ATTR_INT)
        msgpack_pack_int64(packer, v->i);
    else if (v->kind == ATTR_FLOAT)
        msgpack_pack_double(packer, v->f);
    else if (v->kind == ATTR_BOOL)
        (v->b ? msgpack_pack_true : msgpack_pack_false)(packer);
    else if (v->kind == ATTR_SHAPE && v->shape->rank == SHAPE_UNKNOWN)
        msgpack_pack_nil(packer);
    else if (v->kind == ATTR_SHAPE)
        msgpack_pack_array(packer, (size_t)v->shape->rank);
    else
        pack_text(packer, v->kind == ATTR_TYPE ? dtype_name(v->type) : v->s);
    for (int i = 0; v->kind == ATTR_SHAPE && i < v->shape->rank; i++)
        msgpack_pack_int64(packer, v->shape->dims[i]);
}

static void pack_value(struct graph_writer *w, const char *name, const struct attr_value *v)
{
    /* A kind that msgpack has no type for is a map of one entry: its kind and the value. */
    if (v->kind > ATTR_STRING) {
        msgpack_pack_map(w->packer, 1);
        pack_key(w->packer, attr_kind_name(v->kind));
    }
    if (v->kind == ATTR_TENSOR) {
        msgpack_pack_int64(w->packer, (int64_t)w->tensors.n);
        vec_push(&w->tensors, ((struct named_tensor){name, *v->tensor}));
    } else if (v->kind < ATTR_LIST_INT) {
        pack_item(w->packer, v);
    } else {
        msgpack_pack_array(w->packer, (size_t)v->n);
        for (int i = 0; i < v->n; i++) {
            struct attr_value item = attr_item(v, i);
            pack_item(w->packer, &item);
        }
    }
}

static void pack_field(struct graph_writer *w, const char *key, const char *value)
{
    if (!value || !*value)
        return;
    pack_key_text(w->packer, key, value);
}

static void pack_number(struct graph_writer *w, const char *key, int value)
{
    if (value == 0)
        return;
    pack_key_int(w->packer, key, value);
}

static void pack_texts(struct graph_writer *w, const char *key, const char *const *texts, size_t n)
{
    pack_key_array(w->packer, key, n);
    for (size_t i = 0; i < n; i++)
        pack_text(w->packer, texts[i]);
}

int graph_write(struct stream_writer *writer, const struct graph *graph, struct error *err)
{
    struct graph_writer w = {
        .graph = graph, .packer = stream_begin(writer, RECORD_GRAPH, 4 + (graph->removed.n > 0))};
    pack_texts(&w, "made", graph->made.items, graph->made.n);
    if (graph->removed.n)
        pack_texts(&w, "removed", graph->removed.items, graph->removed.n);
    pack_key_map(w.packer, "entries", graph->entries.n);
    vec_each(entry, &graph->entries) {
        pack_key_array(w.packer, entry->name, (size_t)entry->n_edges);
        for (int k = 0; k < entry->n_edges; k++)
            pack_edge(&w, entry->edges[k]);
    }
    pack_key_map(w.packer, "aliases", graph->aliases.n);
    for (size_t i = 0; i < graph->aliases.n; i++) {
        pack_key(w.packer, graph->aliases.items[i].name);
        pack_edge(&w, graph->aliases.items[i].edge);
    }
    pack_key_array(w.packer, "nodes", graph->nodes.n);
    graph_each(node, graph) {
        int version = node->op->def->version, line = node->file ? node->line : 0;
        bool has_inputs = node->n_inputs + node->n_controls > 0;
        size_t fields = 2 + (version != 0) + has_inputs + (node->n_attrs > 0) +
                        (*node->device != 0) + (*node->assigned != 0) +
                        (node->file && *node->file) + (line != 0);
        msgpack_pack_map(w.packer, fields);
        pack_field(&w, "name", node->name);
        pack_field(&w, "op", node->op->def->name);
        pack_number(&w, "version", version);
        if (has_inputs) {
            pack_key_array(w.packer, "inputs", (size_t)(node->n_inputs + node->n_controls));
            for (int j = 0; j < node->n_inputs; j++)
                pack_edge(&w, node->inputs[j]);
            for (int j = 0; j < node->n_controls; j++)
                pack_edge(&w, (struct edge){node->controls[j], CONTROL_SLOT});
        }
        if (node->n_attrs) {
            pack_key_map(w.packer, "attrs", (size_t)node->n_attrs);
            for (int j = 0; j < node->n_attrs; j++) {
                pack_key(w.packer, node->attrs[j].name);
                pack_value(&w, node->name, &node->attrs[j].value);
            }
        }
        pack_field(&w, "device", node->device);
        pack_field(&w, "assigned", node->assigned);
        pack_field(&w, "file", node->file);
        pack_number(&w, "line", line);
    }
    int code = stream_write(writer, w.tensors.items, (int)w.tensors.n, err);
    vec_release(&w.tensors);
    str_release(&w.text);
    return code;
}
