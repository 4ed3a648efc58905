/* SPDX-License-Identifier: Apache-2.0
 *
 * Adding a node: bound to its op's declaration (bind.h), shapes inferred, and only then put in.
 */
#include <stdlib.h>
#include <string.h>

#include "graph/bind.h"
#include "graph/infer.h"

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct attr *)a)->name, ((const struct attr *)b)->name);
}

static int set_attrs(struct bind *b, struct node *node)
{
    struct arena *arena = &b->graph->arena;
    int n = b->op->n_attrs + b->spec->n_attrs, used = 0;
    node->attrs = arena_array(arena, (size_t)n, sizeof *node->attrs);
    for (int i = 0; i < b->op->n_attrs; i++)
        node->attrs[used++] = (struct attr){b->op->attrs[i].name, attr_copy(arena, &b->values[i])};
    for (int i = 0; i < b->spec->n_attrs; i++)
        if (b->spec->attrs[i].name[0] == '_')
            node->attrs[used++] = (struct attr){arena_strdup(arena, b->spec->attrs[i].name),
                                                attr_copy(arena, &b->spec->attrs[i].value)};
    node->n_attrs = used;
    if (used > 1)
        qsort(node->attrs, (size_t)used, sizeof *node->attrs, by_name);
    for (int i = 1; i < used; i++)
        if (!strcmp(node->attrs[i - 1].name, node->attrs[i].name))
            return error_set(b->err, ERR_DATA, "attribute '%s' is given twice",
                             node->attrs[i].name);
    return 0;
}

static void set_rest(struct graph *graph, struct node *node, const struct node_spec *spec)
{
    struct arena *arena = &graph->arena;
    node->n_inputs = spec->n_inputs;
    node->inputs = arena_copy(arena, spec->inputs, (size_t)spec->n_inputs * sizeof *spec->inputs);
    for (int i = 0; i < spec->n_controls; i++)
        graph_add_control(graph, node, spec->controls[i]);
    node->line = spec->line;
    node->device = node->assigned = "";
}

/* Consecutive nodes often have equal texts: reuses the last copy if it is the same. */
static const char *intern(struct graph *graph, const char *text, const char *last)
{
    if (!text || !*text)
        return text ? "" : NULL;
    return last && !strcmp(last, text) ? last : arena_strdup(&graph->arena, text);
}

static void insert(struct graph *graph, struct node *node)
{
    node->id = (int)graph->nodes.n;
    map_put(&graph->names, node->name, node->id);
    vec_push(&graph->nodes, node);
}

struct node *graph_add(struct graph *graph, const struct node_spec *spec, struct error *err)
{
    struct bind b = {.graph = graph, .spec = spec, .err = err};
    b.op = registry_find(graph->registry, spec->op);
    if (!b.op) {
        registry_unknown(graph->registry, spec->op, err);
        if (spec->name)
            error_prefix(err, "node '%s': ", spec->name);
        return NULL;
    }
    if (spec->name && !graph_name_valid(spec->name)) {
        error_set(err, ERR_DATA, "'%.100s' is not a valid node name: " GRAPH_NAME_RULE, spec->name);
        return NULL;
    }
    if (spec->name && (map_get(&graph->names, spec->name, NULL) ||
                       map_get(&graph->alias_names, spec->name, NULL))) {
        error_set(err, ERR_DATA, "the name '%s' is taken", spec->name);
        return NULL;
    }
    const char *name =
        spec->name ? arena_strdup(&graph->arena, spec->name) : graph_unique_name(graph, spec->op);
    struct node *node = arena_alloc(&graph->arena, sizeof *node);
    node->name = name;
    node->op = b.op;
    if (!bind_node(&b)) {
        set_rest(graph, node, spec);
        int code = set_attrs(&b, node);
        int64_t n = 0;
        for (int i = 0; i < b.op->n_outputs; i++)
            n += bind_count(&b, &b.op->outputs[i]);
        node->outputs = arena_array(&b.graph->arena, (size_t)n, sizeof *node->outputs);
        for (int i = 0; i < b.op->n_outputs; i++) {
            const struct op_arg *arg = &b.op->outputs[i];
            int64_t count = bind_count(&b, arg);
            for (int64_t k = 0; k < count; k++) {
                enum dtype type = arg->type_list_attr >= 0 ? b.values[arg->type_list_attr].types[k]
                                  : arg->type_attr >= 0    ? b.values[arg->type_attr].type
                                                           : arg->type;
                node->outputs[node->n_outputs++] =
                    (struct node_output){type, arg->is_ref, SHAPE_ANY};
            }
        }
        struct shape few[8], *shapes = few;
        if (n > 8)
            shapes = arena_array(&graph->arena, (size_t)n, sizeof *shapes);
        if (!code && !infer_node(graph, node, NULL, shapes, err)) {
            static const struct node none = {.device = "", .assigned = ""};
            size_t before = graph->nodes.n;
            const struct node *last = before ? graph->nodes.items[before - 1] : &none;
            for (int i = 0; i < node->n_outputs; i++)
                node->outputs[i].shape = shapes[i];
            node->file = intern(graph, spec->file, last->file);
            node->device = spec->device ? intern(graph, spec->device, last->device) : "";
            node->assigned = spec->assigned ? intern(graph, spec->assigned, last->assigned) : "";
            insert(graph, node);
            return node;
        }
    }
    node_fail(node, err);
    return NULL;
}

struct node *graph_add_trusted(struct graph *graph, const struct node_spec *spec,
                               const struct node_output *outputs, int n_outputs)
{
    struct node *node = arena_alloc(&graph->arena, sizeof *node);
    node->name = spec->name;
    node->op = spec->known ? spec->known : registry_find(graph->registry, spec->op);
    BUG_ON(!node->op);
    set_rest(graph, node, spec);
    node->attrs = (struct attr *)(uintptr_t)spec->attrs;
    node->n_attrs = spec->n_attrs;
    node->n_outputs = n_outputs;
    node->outputs = arena_copy(&graph->arena, outputs, (size_t)n_outputs * sizeof *outputs);
    node->file = spec->file;
    node->device = spec->device ? spec->device : "";
    node->assigned = spec->assigned ? spec->assigned : "";
    insert(graph, node);
    return node;
}

struct node_spec graph_spec_like(const struct node *node)
{
    return (struct node_spec){.op = node->op->def->name,
                              .name = node->name,
                              .attrs = node->attrs,
                              .n_attrs = node->n_attrs,
                              .device = node->device,
                              .file = node->file,
                              .line = node->line};
}

struct node *graph_add_copy(struct graph *graph, const struct node *node)
{
    struct node_spec spec = graph_spec_like(node);
    spec.known = node->op;
    spec.inputs = node->inputs;
    spec.n_inputs = node->n_inputs;
    spec.assigned = node->assigned;
    return graph_add_trusted(graph, &spec, node->outputs, node->n_outputs);
}

int graph_set_input(struct graph *graph, struct node *node, int index, struct edge edge,
                    struct error *err)
{
    const struct node *from = graph_node(graph, edge.node);
    if (index < 0 || index >= node->n_inputs || edge.slot < 0 || edge.slot >= from->n_outputs)
        return error_set(err, ERR_DATA, "node '%s' has no input %d", node->name, index);
    const struct attr_value *t = node_attr(node, "T");
    if (t && t->kind == ATTR_TYPE && t->type != from->outputs[edge.slot].type)
        return error_set(err, ERR_DATA, "node '%s': %s: input %d is %s, but T is %s", node->name,
                         node->op->def->name, index, dtype_name(from->outputs[edge.slot].type),
                         dtype_name(t->type));
    node->inputs[index] = edge;
    return 0;
}

int graph_set_attr(struct graph *graph, struct node *node, const struct attr *attr,
                   struct error *err)
{
    struct bind b = {.graph = graph, .op = node->op, .err = err};
    struct attr_value value = attr->value;
    if (bind_attr(&b, attr->name, &value))
        return error_prefix(err, "node '%s': %s: ", node->name, node->op->def->name);
    value = attr_copy(&graph->arena, &value);
    /* The present array may belong to another graph. */
    struct attr *attrs = arena_array(&graph->arena, (size_t)node->n_attrs + 1, sizeof *attrs);
    if (node->n_attrs)
        memcpy(attrs, node->attrs, (size_t)node->n_attrs * sizeof *attrs);
    for (int i = 0; i < node->n_attrs; i++) {
        if (!strcmp(attrs[i].name, attr->name)) {
            attrs[i].value = value;
            node->attrs = attrs;
            return 0;
        }
    }
    attrs[node->n_attrs++] = (struct attr){arena_strdup(&graph->arena, attr->name), value};
    qsort(attrs, (size_t)node->n_attrs, sizeof *attrs, by_name);
    node->attrs = attrs;
    return 0;
}
