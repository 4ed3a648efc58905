/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/graph.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/str.h"
#include "graph/topology.h"

struct graph *graph_new(const struct registry *registry)
{
    struct graph *graph = mem_alloc(sizeof *graph);
    graph->registry = registry;
    return graph;
}

void graph_free(struct graph *graph)
{
    if (!graph)
        return;
    vec_release(&graph->nodes);
    vec_release(&graph->entries);
    vec_release(&graph->aliases);
    vec_release(&graph->made);
    vec_release(&graph->removed);
    map_release(&graph->names);
    map_release(&graph->alias_names);
    map_release(&graph->entry_names);
    map_release(&graph->removed_names);
    map_release(&graph->taken);
    arena_release(&graph->arena);
    mem_free(graph);
}

struct node *graph_find(const struct graph *graph, const char *name)
{
    int64_t id;
    return map_get(&graph->names, name, &id) ? graph_node(graph, (int)id) : NULL;
}

bool graph_name_valid(const char *name)
{
    size_t n = 0;
    if (!isalnum((unsigned char)*name) && *name != '.')
        return false;
    for (; name[n]; n++)
        if (n == GRAPH_NAME_MAX || (!isalnum((unsigned char)name[n]) && !strchr("_.-/", name[n])))
            return false;
    return true;
}

const char *graph_unique_name(struct graph *graph, const char *base)
{
    if (!map_get(&graph->names, base, NULL) && !map_get(&graph->alias_names, base, NULL))
        return arena_strdup(&graph->arena, base);
    int64_t suffix = 0;
    map_get(&graph->taken, base, &suffix);
    char *name;
    do
        name = arena_printf(&graph->arena, "%s_%" PRId64, base, ++suffix);
    while (map_get(&graph->names, name, NULL) || map_get(&graph->alias_names, name, NULL));
    map_put(&graph->taken, arena_strdup(&graph->arena, base), suffix);
    return name;
}

const char *graph_free_prefix(struct arena *arena, const struct graph *graph, const char *base)
{
    const char *prefix = base;
    bool is_taken = true;
    for (int i = 1; is_taken; i++) {
        is_taken = false;
        for (size_t k = 0; k < graph->nodes.n && !is_taken; k++)
            is_taken = str_starts(graph_node(graph, (int)k)->name, prefix);
        for (size_t k = 0; k < graph->aliases.n && !is_taken; k++)
            is_taken = str_starts(graph->aliases.items[k].name, prefix);
        if (is_taken)
            prefix = arena_printf(arena, "%s.%d", base, i);
    }
    return prefix;
}

int graph_rename(struct graph *graph, struct node *node, const char *name, struct error *err)
{
    if (!strcmp(node->name, name))
        return 0;
    if (!graph_name_valid(name))
        return error_set(err, ERR_DATA, "'%.100s' is not a valid node name: " GRAPH_NAME_RULE,
                         name);
    if (map_get(&graph->names, name, NULL) || map_get(&graph->alias_names, name, NULL))
        return error_set(err, ERR_DATA, "the name '%s' is taken", name);
    map_remove(&graph->names, node->name);
    node->name = arena_strdup(&graph->arena, name);
    map_put(&graph->names, node->name, node->id);
    return 0;
}

/* Room for controls grows to the next power of two, so that adding n of them costs linear time;
 * only this function writes the array. */
void graph_add_control(struct graph *graph, struct node *node, int control)
{
    int n = node->n_controls, at = n;
    BUG_ON(control < 0);
    while (at > 0 && node->controls[at - 1] > control)
        at--;
    if (at > 0 && node->controls[at - 1] == control)
        return;
    if ((n & (n - 1)) == 0) {
        int *grown = arena_array(&graph->arena, n ? (size_t)n * 2 : 1, sizeof *grown);
        if (n)
            memcpy(grown, node->controls, (size_t)n * sizeof *grown);
        node->controls = grown;
    }
    memmove(node->controls + at + 1, node->controls + at, (size_t)(n - at) * sizeof(int));
    node->controls[at] = control;
    node->n_controls = n + 1;
}

void graph_set_device(struct graph *graph, struct node *node, const char *device)
{
    node->device = *device ? arena_strdup(&graph->arena, device) : "";
}

void graph_set_assigned(struct graph *graph, struct node *node, const char *device)
{
    node->assigned = *device ? arena_strdup(&graph->arena, device) : "";
}

void graph_add_entry(struct graph *graph, const char *name, const struct edge *edges, int n)
{
    struct entry entry = {arena_strdup(&graph->arena, name),
                          arena_copy(&graph->arena, edges, (size_t)n * sizeof *edges), n};
    int64_t index;
    if (map_get(&graph->entry_names, name, &index)) {
        graph->entries.items[index] = entry;
        return;
    }
    map_put(&graph->entry_names, entry.name, (int64_t)graph->entries.n);
    vec_push(&graph->entries, entry);
}

const struct entry *graph_entry(const struct graph *graph, const char *name)
{
    int64_t index;
    return map_get(&graph->entry_names, name, &index) ? &graph->entries.items[index] : NULL;
}

int graph_add_alias(struct graph *graph, const char *name, struct edge edge, struct error *err)
{
    int64_t index;
    if (!graph_name_valid(name))
        return error_set(err, ERR_DATA, "'%.100s' is not a valid name", name);
    if (map_get(&graph->names, name, NULL))
        return error_set(err, ERR_DATA, "the name '%s' is taken by a node", name);
    if (map_get(&graph->alias_names, name, &index)) {
        graph->aliases.items[index].edge = edge;
        return 0;
    }
    struct alias alias = {arena_strdup(&graph->arena, name), edge};
    map_put(&graph->alias_names, alias.name, (int64_t)graph->aliases.n);
    vec_push(&graph->aliases, alias);
    return 0;
}

void graph_add_made(struct graph *graph, const char *provenance)
{
    vec_push(&graph->made, arena_strdup(&graph->arena, provenance));
}

int graph_add_removed(struct graph *graph, const char *name, struct error *err)
{
    if (!graph_name_valid(name))
        return error_set(err, ERR_DATA, "removed '%.100s': not a valid name", name);
    if (graph_find(graph, name) || graph_was_removed(graph, name))
        return 0;
    const char *own = arena_strdup(&graph->arena, name);
    map_put(&graph->removed_names, own, (int64_t)graph->removed.n);
    vec_push(&graph->removed, own);
    return 0;
}

bool graph_was_removed(const struct graph *graph, const char *name)
{
    return map_get(&graph->removed_names, name, NULL);
}

void graph_add_history(struct graph *to, const struct graph *from)
{
    for (size_t i = 0; i < from->made.n; i++)
        graph_add_made(to, from->made.items[i]);
    struct error none = ERROR_INIT;
    for (size_t i = 0; i < from->removed.n; i++)
        if (!map_get(&to->alias_names, from->removed.items[i], NULL))
            BUG_ON(graph_add_removed(to, from->removed.items[i], &none)); /* it was valid there */
}

/* ---- order ---- */

int graph_order(const struct graph *graph, int *order, struct error *err)
{
    struct arena memory = ARENA_INIT;
    arc_vec arcs = VEC_INIT;
    const char **names = arena_array(&memory, graph->nodes.n, sizeof *names);
    graph_each(node, graph) {
        names[node->id] = node->name;
        for (int i = 0; i < node->n_inputs + node->n_controls; i++) {
            struct edge edge = node_dependency(node, i);
            if (edge_exists(edge) && !graph_is_back_edge(graph, node, edge))
                vec_push(&arcs, ((struct arc){edge.node, node->id}));
        }
    }
    struct successors next =
        successors_new(&memory, graph->nodes.n, (const arc_vec *[]){&arcs, NULL});
    int code = successors_sort(&next, names, order, err);
    vec_release(&arcs);
    arena_release(&memory);
    return code;
}

/* ---- edges as text ---- */

static int no_such_node(const struct graph *graph, const char *name, struct error *err)
{
    if (graph_was_removed(graph, name))
        return error_set(err, ERR_DATA, "tf-opt has removed '%s'; tf-opt --keep %s keeps it", name,
                         name);
    size_t n = graph->nodes.n + graph->aliases.n, k = 0;
    const char **names = mem_array(n + 1, sizeof *names);
    for (size_t i = 0; i < graph->nodes.n; i++)
        names[k++] = graph->nodes.items[i]->name;
    for (size_t i = 0; i < graph->aliases.n; i++)
        names[k++] = graph->aliases.items[i].name;
    error_set(err, ERR_DATA, "there is no node '%s'%s", name, str_hint(name, names));
    mem_free(names);
    return err->code;
}

/* "name:digits" is an output only if the colon is followed by digits to the end. */
size_t edge_text_split(const char *text, int *slot)
{
    size_t length = strlen(text), digits = length;
    while (digits > 0 && isdigit((unsigned char)text[digits - 1]))
        digits--;
    bool is_output =
        digits < length && digits > 1 && text[digits - 1] == ':' && length - digits <= 6;
    *slot = is_output ? (int)strtol(text + digits, NULL, 10) : 0;
    return is_output ? digits - 1 : length;
}

int graph_parse_edge(const struct graph *graph, const char *text, struct edge *edge,
                     struct error *err)
{
    int64_t index;
    if (*text == '^') {
        struct node *node = graph_find(graph, text + 1);
        if (!node)
            return no_such_node(graph, text + 1, err);
        *edge = (struct edge){node->id, CONTROL_SLOT};
        return 0;
    }
    if (map_get(&graph->alias_names, text, &index)) {
        *edge = graph->aliases.items[index].edge;
        return 0;
    }
    char name[GRAPH_NAME_MAX + 1];
    int slot;
    size_t length = edge_text_split(text, &slot);
    if (length >= sizeof name)
        return error_set(err, ERR_DATA, "a name of %zu characters is too long", length);
    memcpy(name, text, length);
    name[length] = '\0';
    struct node *node = graph_find(graph, name);
    if (!node)
        return no_such_node(graph, name, err);
    if (slot >= node->n_outputs)
        return error_set(err, ERR_DATA, "'%s': node '%s' has %d output%s", text, name,
                         node->n_outputs, node->n_outputs == 1 ? "" : "s");
    *edge = (struct edge){node->id, slot};
    return 0;
}

void graph_print_edge(struct str *out, const struct graph *graph, struct edge edge)
{
    const char *name = graph_node(graph, edge.node)->name;
    if (edge.slot == CONTROL_SLOT)
        str_printf(out, "^%s", name);
    else if (edge.slot == 0)
        str_append(out, name);
    else
        str_printf(out, "%s:%d", name, edge.slot);
}

/* ---- attributes of nodes ---- */

const struct attr_value *node_attr(const struct node *node, const char *name)
{
    for (int i = 0; i < node->n_attrs; i++)
        if (!strcmp(node->attrs[i].name, name))
            return &node->attrs[i].value;
    return NULL;
}

static const struct attr_value *need(const struct node *node, const char *name, enum attr_kind kind)
{
    const struct attr_value *value = node_attr(node, name);
    BUG_ON(!value || value->kind != kind);
    return value;
}

#define GETTER(type, getter, of_kind, member)                                                      \
    type getter(const struct node *node, const char *name)                                         \
    {                                                                                              \
        return need(node, name, of_kind)->member;                                                  \
    }
GETTER(int64_t, node_int, ATTR_INT, i)
GETTER(double, node_float, ATTR_FLOAT, f)
GETTER(bool, node_bool, ATTR_BOOL, b)
GETTER(const char *, node_string, ATTR_STRING, s)
GETTER(enum dtype, node_type, ATTR_TYPE, type)

int32_t node_priority(const struct node *node)
{
    const struct attr_value *given = node_attr(node, "_priority");
    int64_t priority = given && given->kind == ATTR_INT ? given->i : 0;
    if (priority <= INT32_MIN || priority >= INT32_MAX)
        return priority < 0 ? INT32_MIN + 1 : INT32_MAX - 1;
    return (int32_t)priority;
}

/* ---- colocation ---- */

#define GROUP_PREFIX "loc:@"

const char *group_leader_name(const char *group)
{
    return str_starts(group, GROUP_PREFIX) ? group + strlen(GROUP_PREFIX) : NULL;
}

const struct node *group_leader(const struct graph *graph, const char *group)
{
    const char *name = group_leader_name(group);
    return name ? graph_find(graph, name) : NULL;
}

const struct node *group_first_leader(const struct graph *graph, const struct node *node)
{
    const struct attr_value *groups = node_attr(node, "_class");
    bool listed = groups && groups->kind == ATTR_LIST_STRING && groups->n;
    return listed ? group_leader(graph, groups->strings[0]) : NULL;
}

struct attr group_attr(struct arena *arena, const char *leader)
{
    const char *group = arena_printf(arena, GROUP_PREFIX "%s", leader);
    struct attr_value groups = {
        .kind = ATTR_LIST_STRING, .n = 1, .strings = arena_copy(arena, &group, sizeof group)};
    return (struct attr){"_class", groups};
}

/* ---- arguments ---- */

int node_argument(const struct node *node, const struct op_arg *args, int *i)
{
    const struct op_attr *attrs = node->op->attrs;
    for (int at = 0;; at++) {
        int n = 1;
        if (args[at].number_attr >= 0)
            n = (int)node_int(node, attrs[args[at].number_attr].name);
        else if (args[at].type_list_attr >= 0)
            n = node_attr(node, attrs[args[at].type_list_attr].name)->n;
        if (*i < n)
            return at;
        *i -= n;
    }
}

bool node_keeps(const struct node *node, int i)
{
    uint32_t keeps = node->op->def->keeps;
    int at = keeps ? node_argument(node, node->op->inputs, &i) : 0;
    return at < 32 && keeps >> at & 1;
}

const char *node_text(const struct node *node)
{
    static _Thread_local char buffers[4][512];
    static _Thread_local unsigned turn;
    char *text = buffers[turn++ % 4];
    if (node->file)
        snprintf(text, sizeof buffers[0], "node '%s' (%s:%d)", node->name, node->file, node->line);
    else
        snprintf(text, sizeof buffers[0], "node '%s'", node->name);
    return text;
}

int node_fail(const struct node *node, struct error *err)
{
    return error_prefix_node(err, node_text(node), node->op->def->name);
}
