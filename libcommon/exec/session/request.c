/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/session/request.h"

#include <string.h>

#include "exec/plan/prune.h"
#include "graph/access_nodes.h"

void request_release(struct request *request)
{
    vec_release(&request->fetches);
    vec_release(&request->names);
    vec_release(&request->targets);
    map_release(&request->known);
    edge_map_release(&request->alias_of);
}

/* An alias, if the user gave the tensor one; else its canonical name. */
static const char *edge_name(struct request *request, struct edge edge)
{
    const struct graph *graph = request->graph;
    for (size_t i = 0; !request->alias_of.map.n && i < graph->aliases.n; i++)
        edge_map_add(&request->alias_of, graph->aliases.items[i].edge, (int)i);
    int alias = edge_map_get(&request->alias_of, edge);
    if (alias >= 0)
        return graph->aliases.items[alias].name;
    const char *name = graph_node(graph, edge.node)->name;
    struct graph *owner = (struct graph *)(uintptr_t)graph; /* its arena outlives the request */
    return edge.slot ? arena_printf(&owner->arena, "%s:%d", name, edge.slot) : name;
}

static void add_fetch(struct request *request, struct edge edge, const char *name)
{
    if (map_get(&request->known, name, NULL))
        return;
    map_put(&request->known, name, 0);
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

int request_run(struct request *request, const char *name, struct error *err)
{
    const struct graph *graph = request->graph;
    const struct entry *entry = graph_entry(graph, name);
    if (!entry) {
        const struct node *node = graph_find(graph, *name == '^' ? name + 1 : name);
        struct str entries = STR_INIT;
        struct edge none;
        if (node) {
            vec_push(&request->targets, node->id);
            return 0;
        }
        if (graph_was_removed(graph, *name == '^' ? name + 1 : name))
            return graph_parse_edge(graph, name, &none, err);
        for (size_t i = 0; i < graph->entries.n; i++)
            str_printf(&entries, "%s%s", i ? ", " : "", graph->entries.items[i].name);
        error_set(err, ERR_DATA, "there is no entry or node '%s'; the entries are %s", name,
                  entries.n ? str_text(&entries) : "none");
        str_release(&entries);
        return err->code;
    }
    for (int i = 0; i < entry->n_edges; i++) {
        if (entry->edges[i].slot == CONTROL_SLOT)
            vec_push(&request->targets, entry->edges[i].node);
        else
            add_fetch(request, entry->edges[i], edge_name(request, entry->edges[i]));
    }
    return 0;
}

/* ---- what must be fed ---- */

const bool *request_mark_used(const struct request *request, const struct edge *fed, int n_fed,
                              struct arena *memory)
{
    const struct plan_request wanted = {.fetches = request->fetches.items,
                                        .n_fetches = (int)request->fetches.n,
                                        .targets = request->targets.items,
                                        .n_targets = (int)request->targets.n};
    struct edge_map is_fed = {0};
    for (int i = 0; i < n_fed; i++)
        edge_map_add(&is_fed, fed[i], i);
    const bool *used = prune_find_needed(request->graph, &wanted, &is_fed, true, memory);
    edge_map_release(&is_fed);
    return used;
}

void request_needs(const struct request *request, const struct edge *fed, int n_fed,
                   struct node_list *needs)
{
    struct arena memory = ARENA_INIT;
    const bool *used = request_mark_used(request, fed, n_fed, &memory);
    for (size_t i = 0; i < request->graph->nodes.n; i++)
        if (used[i] && node_has(graph_node(request->graph, (int)i), OP_SOURCE))
            vec_push(needs, (int)i);
    arena_release(&memory);
}

bool request_uses(const struct request *request, int node)
{
    struct arena memory = ARENA_INIT;
    const bool *used = request_mark_used(request, NULL, 0, &memory);
    bool uses = used[node];
    arena_release(&memory);
    return uses;
}

int request_only_reads(const struct request *request, const struct edge *fed, int n_fed)
{
    struct arena memory = ARENA_INIT;
    const bool *used = request_mark_used(request, fed, n_fed, &memory);
    int first = -1;
    bool writes = false;
    for (size_t i = 0; i < request->graph->nodes.n; i++) {
        const struct node *node = graph_node(request->graph, (int)i);
        for (int k = 0; used[i] && k < node->n_inputs; k++) {
            const struct node *from = graph_node(request->graph, node->inputs[k].node);
            bool takes_ref = node_takes_ref(node, k);
            writes |= takes_ref;
            if (first < 0 && !takes_ref && node_is(from, "Variable") && node_is_trained(from))
                first = from->id;
        }
    }
    arena_release(&memory);
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
