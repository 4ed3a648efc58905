/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a graph of raw nodes: resolves names to indices, sorts the nodes so that inputs come first,
 * and adds them one by one; back edges of loops are closed at the end.
 */
#include "graph/assemble.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/str.h"

struct assembly {
    struct raw_graph *raw;
    struct graph *graph;
    struct map names;   /* -> raw index */
    struct edge *edges; /* of all nodes, in one array; .node is a raw index */
    size_t *first_edge; /* offset by raw index; one more at the end */
    int *order;         /* raw indices */
    int *id;            /* by raw index: the node's id in the graph; -1: not added yet */
    bool has_back_edges;
    struct error *err;
};

void raw_graph_release(struct raw_graph *raw)
{
    vec_release(&raw->nodes);
    vec_release(&raw->entries);
    vec_release(&raw->aliases);
    vec_release(&raw->made);
    vec_release(&raw->removed);
    arena_release(&raw->arena);
}

/* Prefixes the error with the node and its place. */
static int fail_at(struct assembly *a, const struct raw_node *node, bool named)
{
    a->raw->failed_line = node->text_line;
    if (!named)
        error_prefix(a->err, "node '%s': ", node->name);
    if (node->file && !node->text_line)
        error_prefix(a->err, "%s:%d: ", node->file, node->line);
    return a->err->code;
}

/* ---- names to indices ---- */

static int resolve(struct assembly *a, const char *text, struct edge *edge)
{
    int64_t index;
    int slot = 0;
    if (*text == '^') {
        text++;
        slot = CONTROL_SLOT;
    } else {
        size_t n = edge_text_split(text, &slot);
        text = text[n] ? arena_strndup(&a->raw->arena, text, n) : text;
    }
    if (!map_get(&a->names, text, &index)) {
        const char **names = mem_array(a->raw->nodes.n + 1, sizeof *names);
        for (size_t i = 0; i < a->raw->nodes.n; i++)
            names[i] = a->raw->nodes.items[i].name;
        error_set(a->err, ERR_DATA, "there is no node '%s'%s", text, str_hint(text, names));
        mem_free(names);
        return a->err->code;
    }
    *edge = (struct edge){(int)index, slot};
    return 0;
}

static int resolve_inputs(struct assembly *a)
{
    size_t total = 0, n = a->raw->nodes.n;
    for (size_t i = 0; i < n; i++) {
        const struct raw_node *node = &a->raw->nodes.items[i];
        if (map_get(&a->names, node->name, NULL)) {
            error_set(a->err, ERR_DATA, "there are two nodes of this name");
            return fail_at(a, node, false);
        }
        map_put(&a->names, node->name, (int64_t)i);
        total += (size_t)node->n_inputs;
    }
    a->edges = arena_array(&a->raw->arena, total, sizeof *a->edges);
    a->first_edge = arena_array(&a->raw->arena, n + 1, sizeof *a->first_edge);
    for (size_t i = 0, at = 0; i < n; i++) {
        const struct raw_node *node = &a->raw->nodes.items[i];
        for (int k = 0; k < node->n_inputs; k++)
            if (resolve(a, node->inputs[k], &a->edges[at++]))
                return fail_at(a, node, false);
        a->first_edge[i + 1] = at;
    }
    return 0;
}

/* ---- order ---- */

/* Returns whether the edge may close a cycle; no other kind may. */
static bool is_back_edge(const struct assembly *a, size_t to, struct edge edge)
{
    return edge.slot != CONTROL_SLOT && !strcmp(a->raw->nodes.items[to].op, "Merge") &&
           !strcmp(a->raw->nodes.items[edge.node].op, "NextIteration");
}

enum color { WHITE, GREY, BLACK };

struct visit {
    char *color;
    int *stack;   /* raw indices on the path */
    size_t *edge; /* by raw index: the next input to look at */
    int depth, done;
};

static void visit_push(struct assembly *a, struct visit *v, int index)
{
    v->color[index] = GREY;
    v->edge[index] = a->first_edge[index];
    v->stack[v->depth++] = index;
}

/* Depth-first search from one node: inputs come before the node. */
static int visit_from(struct assembly *a, struct visit *v, int root)
{
    visit_push(a, v, root);
    while (v->depth) {
        int at = v->stack[v->depth - 1];
        if (v->edge[at] == a->first_edge[at + 1]) {
            v->color[at] = BLACK;
            a->order[v->done++] = at;
            v->depth--;
            continue;
        }
        struct edge edge = a->edges[v->edge[at]++];
        if (v->color[edge.node] == BLACK || is_back_edge(a, (size_t)at, edge))
            continue;
        if (v->color[edge.node] == GREY) {
            struct str names = STR_INIT;
            int from = v->depth - 1;
            while (v->stack[from] != edge.node)
                from--;
            for (int i = from; i < v->depth && names.n < 200; i++)
                str_printf(&names, "%s <- ", a->raw->nodes.items[v->stack[i]].name);
            str_append(&names, a->raw->nodes.items[edge.node].name);
            a->raw->failed_line = a->raw->nodes.items[edge.node].text_line;
            error_set(a->err, ERR_DATA, "the graph has a cycle: %s", str_text(&names));
            str_release(&names);
            return a->err->code;
        }
        visit_push(a, v, edge.node);
    }
    return 0;
}

static int order_nodes(struct assembly *a)
{
    size_t n = a->raw->nodes.n;
    bool is_ordered = true;
    int code = 0;
    struct arena *arena = &a->raw->arena;
    a->order = arena_array(arena, n, sizeof *a->order);
    for (size_t i = 0; i < n; i++) {
        a->order[i] = (int)i;
        for (size_t e = a->first_edge[i]; is_ordered && e < a->first_edge[i + 1]; e++)
            is_ordered = (size_t)a->edges[e].node < i || is_back_edge(a, i, a->edges[e]);
    }
    if (is_ordered)
        return 0;
    struct visit v = {.color = arena_alloc(arena, n),
                      .stack = arena_array(arena, n, sizeof *v.stack),
                      .edge = arena_array(arena, n, sizeof *v.edge)};
    for (size_t i = 0; !code && i < n; i++)
        if (v.color[i] == WHITE)
            code = visit_from(a, &v, (int)i);
    return code;
}

/* ---- adding ---- */

static int add_nodes(struct assembly *a)
{
    size_t n = a->raw->nodes.n;
    int most = 1;
    for (size_t i = 0; i < n; i++)
        if (a->raw->nodes.items[i].n_inputs > most)
            most = a->raw->nodes.items[i].n_inputs;
    struct edge *data = arena_array(&a->raw->arena, (size_t)most, sizeof *data);
    int *controls = arena_array(&a->raw->arena, (size_t)most, sizeof *controls);
    a->id = arena_array(&a->raw->arena, n + 1, sizeof *a->id);
    memset(a->id, -1, (n + 1) * sizeof *a->id);
    for (size_t i = 0; !a->err->code && i < n; i++) {
        int index = a->order[i];
        const struct raw_node *raw = &a->raw->nodes.items[index];
        struct node_spec spec = {.op = raw->op,
                                 .name = raw->name,
                                 .attrs = raw->attrs,
                                 .n_attrs = raw->n_attrs,
                                 .inputs = data,
                                 .controls = controls,
                                 .device = raw->device,
                                 .assigned = raw->assigned,
                                 .file = raw->file,
                                 .line = raw->line};
        const struct op *op = registry_find(a->graph->registry, raw->op);
        if (op && raw->version != op->def->version) {
            error_set(a->err, raw->version > op->def->version ? ERR_PROTOCOL : ERR_DATA,
                      "%s has version %" PRId64 "; this program knows version %d", raw->op,
                      raw->version, op->def->version);
            fail_at(a, raw, false);
            break;
        }
        for (size_t e = a->first_edge[index]; e < a->first_edge[index + 1]; e++) {
            struct edge edge = a->edges[e];
            int id = a->id[edge.node];
            if (edge.slot == CONTROL_SLOT)
                controls[spec.n_controls++] = id;
            else
                data[spec.n_inputs++] = id < 0 ? EDGE_NONE : (struct edge){id, edge.slot};
            if (id < 0)
                a->has_back_edges = true;
        }
        struct node *node = graph_add(a->graph, &spec, a->err);
        if (node)
            a->id[index] = node->id;
        else
            fail_at(a, raw, true);
    }
    return a->err->code;
}

static int close_back_edges(struct assembly *a)
{
    if (!a->has_back_edges)
        return 0;
    for (size_t i = 0; i < a->raw->nodes.n; i++) {
        const struct raw_node *raw = &a->raw->nodes.items[i];
        if (strcmp(raw->op, "Merge") != 0)
            continue;
        struct node *node = graph_node(a->graph, a->id[i]);
        int k = 0; /* the data input */
        for (size_t e = a->first_edge[i]; e < a->first_edge[i + 1]; e++) {
            struct edge edge = {a->id[a->edges[e].node], a->edges[e].slot};
            if (edge.slot == CONTROL_SLOT)
                continue;
            if (!edge_exists(node->inputs[k]) && graph_set_input(a->graph, node, k, edge, a->err))
                return fail_at(a, raw, true);
            k++;
        }
    }
    int code = graph_check_rounds(a->graph, a->err);
    return code ? code : graph_infer(a->graph, a->err);
}

/* ---- entries, aliases, provenance ---- */

static int find_edge(struct assembly *a, const char *text, struct edge *edge)
{
    if (resolve(a, text, edge))
        return a->err->code;
    edge->node = a->id[edge->node];
    const struct node *node = graph_node(a->graph, edge->node);
    if (edge->slot >= node->n_outputs)
        return error_set(a->err, ERR_DATA, "'%s': node '%s' has %d output%s", text, node->name,
                         node->n_outputs, node->n_outputs == 1 ? "" : "s");
    return 0;
}

static int fail_name(struct assembly *a, const char *what, const struct raw_name *name)
{
    a->raw->failed_line = name->text_line;
    return error_prefix(a->err, "%s '%s': ", what, name->name);
}

static int add_names(struct assembly *a)
{
    vec_each(name, &a->raw->entries) {
        struct edge *edges = arena_array(&a->raw->arena, (size_t)name->n_edges, sizeof *edges);
        if (!graph_name_valid(name->name))
            error_set(a->err, ERR_DATA, "not a valid name");
        else if (graph_entry(a->graph, name->name))
            error_set(a->err, ERR_DATA, "there are two entries of this name");
        for (int k = 0; !a->err->code && k < name->n_edges; k++)
            find_edge(a, name->edges[k], &edges[k]);
        if (a->err->code)
            return fail_name(a, "entry", name);
        graph_add_entry(a->graph, name->name, edges, name->n_edges);
    }
    vec_each(name, &a->raw->aliases) {
        struct edge edge;
        if (!find_edge(a, name->edges[0], &edge)) {
            if (edge.slot == CONTROL_SLOT)
                error_set(a->err, ERR_DATA, "must name a tensor, not '%s'", name->edges[0]);
            else if (map_get(&a->graph->alias_names, name->name, NULL))
                error_set(a->err, ERR_DATA, "there are two aliases of this name");
            else
                graph_add_alias(a->graph, name->name, edge, a->err);
        }
        if (a->err->code)
            return fail_name(a, "alias", name);
    }
    for (size_t i = 0; i < a->raw->made.n; i++)
        graph_add_made(a->graph, a->raw->made.items[i]);
    for (size_t i = 0; !a->err->code && i < a->raw->removed.n; i++)
        graph_add_removed(a->graph, a->raw->removed.items[i], a->err);
    return a->err->code;
}

int graph_assemble(const struct registry *registry, struct raw_graph *raw, struct graph **graph,
                   struct error *err)
{
    struct assembly a = {.raw = raw, .graph = graph_new(registry), .err = err};
    raw->failed_line = 0;
    int code = resolve_inputs(&a);
    code = code ? code : order_nodes(&a);
    code = code ? code : add_nodes(&a);
    code = code ? code : close_back_edges(&a);
    code = code ? code : add_names(&a);
    map_release(&a.names);
    if (code)
        graph_free(a.graph);
    else
        *graph = a.graph;
    return code;
}
