/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/session/request.h"

#include <string.h>

#include "base/memory.h"
#include "graph/join.h"

void request_release(struct request *request)
{
    vec_release(&request->fetches);
    vec_release(&request->names);
    vec_release(&request->targets);
}

/* An alias, if the user gave the tensor one; else its canonical name. */
static const char *edge_name(const struct graph *graph, struct edge edge)
{
    for (size_t i = 0; i < graph->aliases.n; i++) {
        const struct alias *alias = &graph->aliases.items[i];
        if (alias->edge.node == edge.node && alias->edge.slot == edge.slot)
            return alias->name;
    }
    const char *name = graph_node(graph, edge.node)->name;
    struct graph *owner = (struct graph *)(uintptr_t)graph; /* its arena outlives the request */
    return edge.slot ? arena_printf(&owner->arena, "%s:%d", name, edge.slot) : name;
}

static void add_fetch(struct request *request, struct edge edge, const char *name)
{
    for (size_t i = 0; i < request->fetches.n; i++)
        if (request->fetches.items[i].node == edge.node &&
            request->fetches.items[i].slot == edge.slot && !strcmp(request->names.items[i], name))
            return;
    vec_push(&request->fetches, edge);
    vec_push(&request->names, name);
}

int request_fetch(struct request *request, const char *name, struct error *err)
{
    struct edge edge;
    int code = graph_parse_edge(request->graph, name, &edge, err);
    if (code)
        return code;
    const struct node *node = graph_node(request->graph, edge.node);
    if (edge.slot == CONTROL_SLOT || !node->n_outputs)
        return error_set(err, ERR_DATA, "%s: has no value to fetch; use --run", node_text(node));
    add_fetch(request, edge, name);
    return 0;
}

static int no_entry(const struct graph *graph, const char *name, struct error *err)
{
    struct edge none;
    if (graph_was_removed(graph, *name == '^' ? name + 1 : name))
        return graph_parse_edge(graph, name, &none, err);
    struct str entries = STR_INIT;
    for (size_t i = 0; i < graph->entries.n; i++)
        str_printf(&entries, "%s%s", i ? ", " : "", graph->entries.items[i].name);
    int code = error_set(err, ERR_DATA, "there is no entry or node '%s'; the entries are %s", name,
                         entries.n ? str_text(&entries) : "none");
    str_release(&entries);
    return code;
}

int request_run(struct request *request, const char *name, struct error *err)
{
    const struct entry *entry = graph_entry(request->graph, name);
    if (!entry) {
        struct node *node = graph_find(request->graph, *name == '^' ? name + 1 : name);
        if (!node)
            return no_entry(request->graph, name, err);
        vec_push(&request->targets, node->id);
        return 0;
    }
    for (int i = 0; i < entry->n_edges; i++) {
        if (entry->edges[i].slot == CONTROL_SLOT)
            vec_push(&request->targets, entry->edges[i].node);
        else
            add_fetch(request, entry->edges[i], edge_name(request->graph, entry->edges[i]));
    }
    return 0;
}

/* ---- what must be fed ---- */

struct feed_search {
    const struct graph *graph;
    const struct edge *fed;
    int n_fed;
    char *seen;
    struct node_list todo;
};

static void visit(struct feed_search *s, struct edge edge)
{
    for (int i = 0; i < s->n_fed; i++)
        if (s->fed[i].node == edge.node && s->fed[i].slot == edge.slot)
            return;
    if (!s->seen[edge.node]) {
        s->seen[edge.node] = 1;
        vec_push(&s->todo, edge.node);
    }
}

/* A mark for each node that a step runs; the caller frees it. */
static char *find_used(const struct request *request, const struct edge *fed, int n_fed)
{
    struct feed_search s = {.graph = request->graph, .fed = fed, .n_fed = n_fed};
    s.seen = mem_alloc(request->graph->nodes.n + 1);
    for (size_t i = 0; i < request->fetches.n; i++)
        visit(&s, request->fetches.items[i]);
    for (size_t i = 0; i < request->targets.n; i++)
        visit(&s, (struct edge){request->targets.items[i], CONTROL_SLOT});
    while (s.todo.n) {
        const struct node *node = graph_node(s.graph, vec_pop(&s.todo));
        for (int i = 0; i < node->n_inputs; i++)
            visit(&s, node->inputs[i]);
        for (int i = 0; i < node->n_controls; i++)
            visit(&s, (struct edge){node->controls[i], CONTROL_SLOT});
        const struct node *send = join_send_of(s.graph, node);
        if (send)
            visit(&s, (struct edge){send->id, CONTROL_SLOT});
    }
    vec_release(&s.todo);
    return s.seen;
}

void request_needs(const struct request *request, const struct edge *fed, int n_fed,
                   struct node_list *needs)
{
    char *used = find_used(request, fed, n_fed);
    for (size_t i = 0; i < request->graph->nodes.n; i++)
        if (used[i] && node_has(graph_node(request->graph, (int)i), OP_SOURCE))
            vec_push(needs, (int)i);
    mem_free(used);
}

bool request_uses(const struct request *request, int node)
{
    char *used = find_used(request, NULL, 0);
    bool uses = used[node];
    mem_free(used);
    return uses;
}

static bool is_trained(const struct node *node)
{
    const struct attr_value *mark = node_attr(node, "_trainable");
    return node_is(node, "Variable") && dtype_is_floating(node->outputs[0].type) &&
           !(mark && mark->kind == ATTR_BOOL && !mark->b);
}

int request_only_reads(const struct request *request, const struct edge *fed, int n_fed)
{
    char *used = find_used(request, fed, n_fed);
    int first = -1;
    bool writes = false;
    for (size_t i = 0; i < request->graph->nodes.n; i++) {
        const struct node *node = graph_node(request->graph, (int)i);
        for (int k = 0; used[i] && k < node->n_inputs; k++) {
            const struct op_arg *arg = k < node->op->n_inputs ? &node->op->inputs[k] : NULL;
            const struct node *from = graph_node(request->graph, node->inputs[k].node);
            writes |= arg && arg->is_ref;
            if (first < 0 && !(arg && arg->is_ref) && is_trained(from))
                first = from->id;
        }
    }
    mem_free(used);
    return writes ? -1 : first;
}

void request_print_needs(struct str *out, const struct graph *graph, const struct node_list *needs)
{
    for (size_t i = 0; i < needs->n; i++) {
        const struct node *node = graph_node(graph, needs->items[i]);
        str_printf(out, "%s%s ", i ? ", " : "", node->name);
        shape_print_typed(out, node->outputs[0].type, &node->outputs[0].shape);
    }
}
