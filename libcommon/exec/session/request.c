/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/session/request.h"

#include <string.h>

#include "base/memory.h"
#include "exec/plan/prune.h"
#include "graph/access_nodes.h"
#include "graph/frames.h"
#include "graph/join.h"
#include "graph/worker_attr.h"

void request_release(struct request *request)
{
    vec_release(&request->fetches);
    vec_release(&request->names);
    vec_release(&request->targets);
    map_release(&request->known);
    edge_map_release(&request->alias_of);
}

struct plan_request request_with_feeds(const struct request *request, const struct edge *feeds,
                                       const struct tensor *values, size_t n_feeds)
{
    return (struct plan_request){.feeds = feeds,
                                 .feed_values = values,
                                 .n_feeds = (int)n_feeds,
                                 .fetches = request->fetches.items,
                                 .n_fetches = (int)request->fetches.n,
                                 .targets = request->targets.items,
                                 .n_targets = (int)request->targets.n};
}

/* The tensor's alias, if the user gave it one; else its canonical name. */
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

/* ---- sources that must be fed ---- */

/* By node: whether a step runs it, including Sends of Recvs. */
static const bool *mark_used(const struct request *request, const struct edge *fed, int n_fed,
                             struct arena *memory)
{
    const struct plan_request wanted = request_with_feeds(request, NULL, NULL, 0);
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
    const bool *used = mark_used(request, fed, n_fed, &memory);
    for (size_t i = 0; i < request->graph->nodes.n; i++)
        if (used[i] && node_has(graph_node(request->graph, (int)i), OP_SOURCE))
            vec_push(needs, (int)i);
    arena_release(&memory);
}

bool request_uses(const struct request *request, int node)
{
    struct arena memory = ARENA_INIT;
    const bool *used = mark_used(request, NULL, 0, &memory);
    bool uses = used[node];
    arena_release(&memory);
    return uses;
}

int request_only_reads(const struct request *request, const struct edge *fed, int n_fed)
{
    struct arena memory = ARENA_INIT;
    const bool *used = mark_used(request, fed, n_fed, &memory);
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

/* ---- which variables a fetch depends on: those before the step, or those after it ---- */

/* By the order of reads and writes (graph/access.h), a read sees the writes from which a path leads
 * to it. Shards write a worker's pushes while its ClockPush waits, so that op stands for a write of
 * each variable that shards keep. */

struct moments {
    const struct graph *graph;
    const bool *used;
    const int *variable;        /* by node: the variable that it is, or refers to; -1 */
    struct access_graph access; /* with a read by each node that looks at a variable */
    struct request_view *views; /* by node */
    bool *is_write;             /* by node: its output is the variable that it has written */
};

/* Returns whether the variable is local to a worker: a copy of a shard's, or a counter. */
static bool is_own(const struct moments *m, int variable)
{
    return node_attr(graph_node(m->graph, variable), WORKER_LOCAL) != NULL;
}

static void describe_access(struct moments *m, const struct node *node)
{
    const struct node *send = join_send_of(m->graph, node);
    const bool commits = node_round(node) == ROUND_COMMIT;
    access_add_node(&m->access, m->graph, m->variable, node);
    if (send)
        vec_push(&m->access.edges, ((struct arc){send->id, node->id}));
    for (int v = 0; commits && v < (int)m->graph->nodes.n; v++) {
        struct access write = {.variable = v, .node = node->id, .write = true};
        if (node_is(graph_node(m->graph, v), "Variable") && m->variable[v] == v && !is_own(m, v))
            vec_push(&m->access.accesses, write);
    }
    for (int k = 0; k < node->n_inputs; k++) {
        int variable = access_variable_at(m->graph, m->variable, node->inputs[k]);
        struct access read = {.variable = variable, .node = node->id};
        bool writes = node_writes_ref(node, k);
        m->is_write[node->id] |= writes;
        if (writes && variable >= 0)
            vec_push(&m->access.accesses, read);
    }
}

static bool take_view(struct moments *m, int to, int from)
{
    struct request_view *view = &m->views[to], before = *view;
    view->before |= m->views[from].before;
    view->of_own |= m->views[from].of_own;
    return view->before != before.before || view->of_own != before.of_own;
}

struct request_view *request_views(const struct request *request)
{
    struct error ignored = ERROR_INIT; /* a graph without an order is refused elsewhere */
    struct arena memory = ARENA_INIT;
    const struct graph *graph = request->graph;
    size_t n = graph->nodes.n + 1, n_fetches = request->fetches.n;
    struct request_view *views = mem_array(n_fetches + 1, sizeof *views);
    struct moments m = {.graph = graph,
                        .used = mark_used(request, NULL, 0, &memory),
                        .variable = access_variables(graph, &memory),
                        .access.n = (int)graph->nodes.n,
                        .views = arena_array(&memory, n, sizeof *m.views),
                        .is_write = arena_array(&memory, n, sizeof *m.is_write)};
    int *order = arena_array(&memory, n, sizeof *order);
    struct frames *frames = NULL;
    if (!frames_new(graph, &frames, &ignored)) { /* a node in a loop is over when the loop is */
        m.access.frame = frames->frame;
        m.access.parent = frames->parents;
        m.access.n_frames = (int)frames->frames.n;
    }
    graph_each(node, graph) {
        if (m.used[node->id])
            describe_access(&m, node);
    }
    int *n_writes = arena_array(&memory, n, sizeof *n_writes); /* by variable */
    int *counts = access_count_writes(&m.access);
    vec_each(access, &m.access.accesses) {
        n_writes[access->variable] += access->write;
    }
    vec_each(read, &m.access.accesses) {
        bool is_early = counts[read - m.access.accesses.items] < n_writes[read->variable];
        m.views[read->node].of_own |= !read->write && is_own(&m, read->variable);
        m.views[read->node].before |= !read->write && is_early;
    }
    mem_free(counts);
    /* Nodes have the views of their inputs, except nodes that write a variable. Repeats until
     * nothing changes, as values also go to the next iteration, and to other parts. */
    for (bool changes = !graph_order(graph, order, &ignored); changes;) {
        changes = false;
        graph_each_ordered(node, graph, order) {
            const struct node *send = m.used[node->id] ? join_send_of(graph, node) : NULL;
            for (int k = 0; m.used[node->id] && !m.is_write[node->id] && k < node->n_inputs; k++)
                changes |= take_view(&m, node->id, node->inputs[k].node);
            if (send)
                changes |= take_view(&m, node->id, send->id);
        }
    }
    for (size_t i = 0; i < n_fetches; i++)
        views[i] = m.views[request->fetches.items[i].node];
    access_graph_release(&m.access);
    frames_free(frames);
    arena_release(&memory);
    return views;
}
