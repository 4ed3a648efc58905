/* SPDX-License-Identifier: Apache-2.0
 *
 * Printing the text form.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/text.h"

/* A constant of at least this many equal elements is printed as one element. */
#define FILL_COUNT 17

/* A text at the end of a line is quoted only where it would not be parsed back unchanged. */
static void print_rest(struct str *out, const char *text)
{
    size_t n = strlen(text);
    bool plain = n && *text != '"' && *text != '=' && *text != ' ' && text[n - 1] != ' ';
    for (size_t i = 0; i < n; i++)
        plain = plain && (unsigned char)text[i] >= ' ' && text[i] != 0x7f;
    struct attr_value value = attr_string(text);
    if (plain)
        str_append(out, text);
    else
        attr_print(out, &value, -1);
}

/* ---- attributes ---- */

/* As attr_print, but tensors also show type and shape where the literal alone does not determine
 * them. */
static void print_attr(struct str *out, const struct node *node, const struct attr_value *value,
                       int64_t elide)
{
    if (value->kind != ATTR_TENSOR) {
        attr_print(out, value, elide);
        return;
    }
    const struct tensor *t = value->tensor;
    const struct attr_value *type = node_attr(node, "dtype");
    size_t bytes = dtype_bytes(t->type), n = (size_t)tensor_count(t);
    const char *data = t->data;
    bool fill = bytes && n >= FILL_COUNT && !memcmp(data, data + bytes, bytes * (n - 1));
    bool known = type && type->kind == ATTR_TYPE && type->type == t->type;
    if (known && !fill && n) {
        tensor_print(out, t, elide);
        return;
    }
    shape_print_typed(out, t->type, &t->shape);
    str_append_char(out, '(');
    if (fill)
        tensor_print_element(out, t, 0);
    else if (n)
        tensor_print(out, t, elide);
    str_append_char(out, ')');
}

/* Returns whether the value's text determines its kind: free attributes have no declaration. */
static bool tells_kind(const struct attr_value *value)
{
    enum attr_kind kind = value->kind;
    bool is_list = kind == ATTR_LIST_INT || kind == ATTR_LIST_STRING;
    return kind == ATTR_INT || kind == ATTR_BOOL || kind == ATTR_STRING || kind == ATTR_TYPE ||
           (kind == ATTR_FLOAT && isfinite(value->f)) || (is_list && value->n > 0);
}

/* ---- nodes ---- */

void graph_print_types(struct str *out, const struct node *node)
{
    for (int i = 0; i < node->n_outputs; i++) {
        if (i)
            str_append(out, ", ");
        shape_print_typed(out, node->outputs[i].type, &node->outputs[i].shape);
    }
}

static int by_value(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static void print_node(struct str *out, const struct graph *graph, const struct node *node,
                       const int *order, const int *position, const struct text_form *form)
{
    str_append(out, node->name);
    str_append(out, " = ");
    str_append(out, node->op->def->name);
    if (node->op->def->version)
        str_printf(out, ".%d", node->op->def->version);
    str_append_char(out, '(');
    for (int i = 0; i < node->n_inputs; i++) {
        str_append(out, i ? ", " : "");
        graph_print_edge(out, graph, node->inputs[i]);
    }
    if (node->n_controls) {
        /* Controls in the order of the lines, which is the order of ids once the text is parsed. */
        int *sorted = mem_array((size_t)node->n_controls + 1, sizeof *sorted);
        for (int i = 0; i < node->n_controls; i++)
            sorted[i] = position[node->controls[i]];
        qsort(sorted, (size_t)node->n_controls, sizeof *sorted, by_value);
        for (int i = 0; i < node->n_controls; i++) {
            str_append(out, node->n_inputs + i ? ", " : "");
            graph_print_edge(out, graph, (struct edge){order[sorted[i]], CONTROL_SLOT});
        }
        mem_free(sorted);
    }
    str_append_char(out, ')');
    for (int i = 0; i < node->n_attrs; i++) {
        const struct attr *attr = &node->attrs[i];
        str_append(out, i ? ", " : " {");
        str_append(out, attr->name);
        if (attr->name[0] == '_' && !tells_kind(&attr->value))
            str_printf(out, ":%s", attr_kind_name(attr->value.kind));
        str_append_char(out, '=');
        print_attr(out, node, &attr->value, form->elide);
    }
    if (node->n_attrs)
        str_append_char(out, '}');
    if (*node->device)
        str_printf(out, " @?%s", node->device);
    if (*node->assigned)
        str_printf(out, " @%s", node->assigned);
    if (node->n_outputs)
        str_append(out, " : ");
    graph_print_types(out, node);
    if (node->file && !form->no_places) {
        str_append(out, " at ");
        print_rest(out, node->file);
        str_printf(out, ":%d", node->line);
    }
    str_append_char(out, '\n');
}

int graph_print_text(struct str *out, const struct graph *graph, const struct text_form *form,
                     struct error *err)
{
    static const struct text_form all = {.elide = -1};
    size_t n = graph->nodes.n;
    int *order = mem_array(2 * n + 1, sizeof *order), *position = order + n;
    int code = graph_order(graph, order, err);
    if (!code) {
        for (size_t i = 0; i < n; i++)
            position[order[i]] = (int)i;
        str_printf(out, "graph %d\n", TEXT_VERSION);
        for (size_t i = 0; i < graph->made.n; i++) {
            str_append(out, "made ");
            print_rest(out, graph->made.items[i]);
            str_append_char(out, '\n');
        }
        for (size_t i = 0; i < graph->removed.n; i++)
            str_printf(out, "removed %s\n", graph->removed.items[i]);
        vec_each(entry, &graph->entries) {
            str_printf(out, "entry %s =", entry->name);
            for (int k = 0; k < entry->n_edges; k++) {
                str_append(out, k ? ", " : " ");
                graph_print_edge(out, graph, entry->edges[k]);
            }
            str_append_char(out, '\n');
        }
        for (size_t i = 0; i < graph->aliases.n; i++) {
            str_printf(out, "alias %s = ", graph->aliases.items[i].name);
            graph_print_edge(out, graph, graph->aliases.items[i].edge);
            str_append_char(out, '\n');
        }
        for (size_t i = 0; i < n; i++)
            print_node(out, graph, graph_node(graph, order[i]), order, position,
                       form ? form : &all);
    }
    mem_free(order);
    return code;
}
