/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs: a summary of a few lines, or all of it as text, for Graphviz, or as JSON lines.
 */
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "graph/dot.h"
#include "graph/graph_io.h"
#include "graph/text.h"
#include "show/show.h"

/* ---- the summary ---- */

struct show_text show_bytes(int64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    int unit = 0;
    while (value >= 1024 && unit < 4) {
        value /= 1024;
        unit++;
    }
    struct show_text text;
    snprintf(text.s, sizeof text.s, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return text;
}

/* Starts the line on the first call, continues it on later ones. */
static void add_column(struct str *out, bool *started, const char *title)
{
    if (*started)
        str_append(out, "   ");
    else
        str_printf(out, "%-8s", title);
    *started = true;
}

enum owner { OWNER_OTHER, OWNER_MODEL, OWNER_OPTIMIZER };

/* Marks the inputs of update ops, direct ones and those read by an Identity. */
static char *mark_updated(const struct graph *graph)
{
    char *updated = mem_alloc(graph->nodes.n + 1);
    graph_each(node, graph) {
        for (int k = 0; k < node->n_inputs && node->op->def->descent.gradient; k++) {
            const struct node *from = graph_node(graph, node->inputs[k].node);
            if (node_is(from, "Identity"))
                from = graph_node(graph, from->inputs[0].node);
            updated[from->id] = 1;
        }
    }
    return updated;
}

static void print_summary(struct str *out, const struct graph *graph, bool verbose)
{
    struct map devices = MAP_INIT;
    graph_each(node, graph)
        if (*node->assigned)
            map_put(&devices, node->assigned, 1);
    str_printf(out, "%-8s%zu node%s", "graph", graph->nodes.n, graph->nodes.n == 1 ? "" : "s");
    if (devices.n)
        str_printf(out, " on %zu device%s", devices.n, devices.n == 1 ? "" : "s");
    map_release(&devices);
    str_append_char(out, '\n');
    bool started = false;
    vec_each(entry, &graph->entries) {
        bool usual = !strcmp(entry->name, "init") || !strcmp(entry->name, "ready");
        if (usual && !verbose)
            continue;
        add_column(out, &started, "entry");
        str_append(out, entry->name);
        for (int k = 0; k < entry->n_edges; k++) {
            str_append(out, k ? "," : " ");
            graph_print_edge(out, graph, entry->edges[k]);
        }
    }
    str_append(out, started ? "\n" : "");
    started = false;
    for (size_t i = 0; verbose && i < graph->aliases.n; i++) {
        add_column(out, &started, "alias");
        str_printf(out, "%s ", graph->aliases.items[i].name);
        graph_print_edge(out, graph, graph->aliases.items[i].edge);
    }
    str_append(out, started ? "\n" : "");
    started = false;
    graph_each(node, graph) {
        if (!node_has(node, OP_SOURCE) || !node->n_outputs)
            continue;
        add_column(out, &started, "feeds");
        str_printf(out, "%s ", node->name);
        graph_print_types(out, node);
    }
    str_append(out, started ? "\n" : "");
    int n[3] = {0}, total = 0;
    int64_t bytes[3] = {0};
    char *updated = mark_updated(graph);
    graph_each(node, graph) {
        if (!node_is(node, "Variable"))
            continue;
        /* A variable belongs to the optimizer if it is not trained and is colocated with another
         * variable or is an input of an update op. */
        enum owner owner = node_is_trained(node)                            ? OWNER_MODEL
                           : node_attr(node, "_class") || updated[node->id] ? OWNER_OPTIMIZER
                                                                            : OWNER_OTHER;
        int64_t size = shape_bytes(&node->outputs[0].shape, node->outputs[0].type);
        n[owner]++;
        total++;
        bytes[owner] += size > 0 ? size : 0;
    }
    mem_free(updated);
    if (total) {
        str_printf(out, "%-8s%d variable%s, %s: %d trained (%s)", "state", total,
                   total == 1 ? "" : "s", show_bytes(bytes[0] + bytes[1] + bytes[2]).s,
                   n[OWNER_MODEL], show_bytes(bytes[OWNER_MODEL]).s);
        if (n[OWNER_OPTIMIZER])
            str_printf(out, ", %d of the optimizer", n[OWNER_OPTIMIZER]);
        if (n[OWNER_OTHER])
            str_printf(out, ", %d other%s", n[OWNER_OTHER], n[OWNER_OTHER] == 1 ? "" : "s");
        str_append_char(out, '\n');
    }
    for (size_t i = 0; i < graph->made.n; i++) {
        str_append(out, i ? " | " : "made    ");
        str_append(out, graph->made.items[i]);
    }
    str_append(out, graph->made.n ? "\n" : "");
}

/* ---- JSON ---- */

static void print_text(struct str *out, const char *text)
{
    show_json_text(out, text, strlen(text));
}

static void print_value(struct str *out, const struct attr_value *v, int64_t elide)
{
    struct str text = STR_INIT;
    switch (v->kind) {
    case ATTR_INT:
    case ATTR_BOOL:
        attr_print(out, v, elide);
        break;
    case ATTR_FLOAT:
        show_json_float(out, v->f);
        break;
    case ATTR_STRING:
        print_text(out, v->s);
        break;
    case ATTR_TYPE:
    case ATTR_SHAPE:
        attr_print(&text, v, elide);
        print_text(out, str_text(&text));
        str_release(&text);
        break;
    case ATTR_TENSOR:
        if (elide >= 0 && tensor_count(v->tensor) > elide)
            str_append(out, "null");
        else
            show_json_tensor(out, v->tensor);
        break;
    default:
        str_append_char(out, '[');
        for (int i = 0; i < v->n; i++) {
            str_append(out, i ? "," : "");
            struct attr_value item = attr_item(v, i);
            print_value(out, &item, elide);
        }
        str_append_char(out, ']');
        break;
    }
}

static void print_field(struct str *out, const char *key, const char *value)
{
    if (!value || !*value)
        return;
    str_printf(out, ",\"%s\":", key);
    print_text(out, value);
}

static void print_json_node(struct str *out, const struct graph *graph, const struct node *node,
                            int64_t elide)
{
    struct str types = STR_INIT;
    str_append(out, "{\"name\":");
    print_text(out, node->name);
    print_field(out, "op", node->op->def->name);
    struct str text = STR_INIT;
    str_append(out, ",\"inputs\":[");
    for (int i = 0; i < node->n_inputs + node->n_controls; i++) {
        struct edge edge = node_dependency(node, i);
        str_clear(&text);
        graph_print_edge(&text, graph, edge);
        str_append(out, i ? "," : "");
        print_text(out, str_text(&text));
    }
    str_append_char(out, ']');
    str_release(&text);
    str_append(out, ",\"attrs\":{");
    for (int i = 0; i < node->n_attrs; i++) {
        str_append(out, i ? "," : "");
        print_text(out, node->attrs[i].name);
        str_append_char(out, ':');
        print_value(out, &node->attrs[i].value, elide);
    }
    str_append_char(out, '}');
    graph_print_types(&types, node);
    print_field(out, "type", str_text(&types));
    print_field(out, "device", node->device);
    print_field(out, "assigned", node->assigned);
    print_field(out, "file", node->file);
    if (node->file)
        str_printf(out, ",\"line\":%d", node->line);
    str_append(out, "}\n");
    str_release(&types);
}

/* One object per node, in the order of the text form. Constants of more than `elide` elements are
 * shown as null (< 0: none are). */
static int print_json(struct str *out, const struct graph *graph, int64_t elide, struct error *err)
{
    int *order = mem_array(graph->nodes.n + 1, sizeof *order);
    int code = graph_order(graph, order, err);
    for (size_t i = 0; i < graph->nodes.n && !code; i++)
        print_json_node(out, graph, graph_node(graph, order[i]), elide);
    mem_free(order);
    return code;
}

/* ---- a record ---- */

int show_graph(const struct show *show, const struct record *record, struct error *err)
{
    struct graph *graph;
    struct str out = STR_INIT;
    int code = graph_from_record(show->registry, record, &graph, err);
    if (code)
        return code;
    int64_t elide = show->elide ? SHOW_ELIDE : -1;
    if (show->text)
        code = graph_print_text(&out, graph, &(struct text_form){elide, show->no_places}, err);
    else if (show->dot)
        graph_print_dot(&out, graph, (int)show->depth);
    else if (show->json)
        code = print_json(&out, graph, elide, err);
    else
        print_summary(&out, graph, show->verbose > 0);
    fwrite(str_text(&out), 1, out.n, show->out);
    str_release(&out);
    graph_free(graph);
    return code;
}
