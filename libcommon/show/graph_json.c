/* SPDX-License-Identifier: Apache-2.0 */
#include "show/graph_json.h"

#include <string.h>

#include "base/memory.h"
#include "graph/text.h"
#include "show/show.h"

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

int show_graph_json(struct str *out, const struct graph *graph, int64_t elide, struct error *err)
{
    int *order = mem_array(graph->nodes.n + 1, sizeof *order);
    int code = graph_order(graph, order, err);
    for (size_t i = 0; i < graph->nodes.n && !code; i++)
        print_json_node(out, graph, graph_node(graph, order[i]), elide);
    mem_free(order);
    return code;
}
