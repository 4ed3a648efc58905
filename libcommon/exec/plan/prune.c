/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/plan/prune.h"

#include <string.h>

#include "base/memory.h"
#include "graph/join.h"
#include "graph/walk.h"

/* Returns whether a feed stands for each output of the node. */
static bool feeds_all(const struct edge_map *fed, const struct node *node)
{
    bool all = node->n_outputs > 0;
    for (int i = 0; i < node->n_outputs; i++)
        all = all && edge_map_get(fed, (struct edge){node->id, i}) >= 0;
    return all;
}

const bool *prune_find_needed(const struct graph *graph, const struct plan_request *request,
                              const struct edge_map *fed, bool crosses, struct arena *memory)
{
    struct graph_walk walk = graph_walk_new(memory, graph);
    const struct node *node;
    for (int i = 0; i < request->n_fetches; i++)
        if (edge_map_get(fed, request->fetches[i]) < 0)
            graph_walk_to(&walk, request->fetches[i].node);
    for (int i = 0; i < request->n_targets; i++)
        graph_walk_to(&walk, request->targets[i]);
    while ((node = graph_walk_next(&walk, graph))) {
        const struct node *send = crosses ? join_send_of(graph, node) : NULL;
        for (int i = 0; i < node->n_inputs; i++)
            if (edge_map_get(fed, node->inputs[i]) < 0)
                graph_walk_to(&walk, node->inputs[i].node);
        for (int i = 0; i < node->n_controls; i++)
            if (!feeds_all(fed, graph_node(graph, node->controls[i])))
                graph_walk_to(&walk, node->controls[i]);
        graph_walk_to(&walk, send ? send->id : -1);
    }
    return walk.seen;
}

void prune_init(struct prune *p, const struct graph *from, const struct plan_request *request,
                bool crosses)
{
    size_t n = from->nodes.n + 1, n_feeds = (size_t)request->n_feeds + 1;
    *p = (struct prune){.from = from,
                        .request = request,
                        .crosses = crosses,
                        .memory = ARENA_INIT,
                        .to = graph_new(from->registry)};
    for (int i = 0; i < request->n_feeds; i++)
        edge_map_add(&p->fed, request->feeds[i], i);
    p->needed = prune_find_needed(from, request, &p->fed, crosses, &p->memory);
    p->copy = arena_array(&p->memory, n, sizeof *p->copy);
    p->slot = arena_array(&p->memory, n, sizeof *p->slot);
    p->feed = arena_array(&p->memory, n_feeds, sizeof *p->feed);
    memset(p->copy, -1, n * sizeof *p->copy);
    memset(p->feed, -1, n_feeds * sizeof *p->feed);
}

void prune_release(struct prune *p)
{
    edge_map_release(&p->fed);
    arena_release(&p->memory);
}

static int add_feed(struct prune *p, int at)
{
    struct arena *arena = &p->to->arena;
    const struct edge edge = p->request->feeds[at];
    const struct tensor *value = &p->request->feed_values[at];
    const struct node *fed = graph_node(p->from, edge.node);
    struct attr attrs[] = {{"dtype", attr_type(value->type)}, {"shape", attr_shape(&value->shape)}};
    struct node_spec spec = {.op = "Placeholder",
                             .name = arena_printf(arena, "_feed_%s_%d", fed->name, edge.slot),
                             .attrs = arena_copy(arena, attrs, sizeof attrs),
                             .n_attrs = 2,
                             .file = fed->file,
                             .line = fed->line};
    struct node_output output = {value->type, false, value->shape};
    return graph_add_trusted(p->to, &spec, &output, 1)->id;
}

/* Returns the node whose copy stands for `node`. */
static int copied_node(const struct prune *p, int node)
{
    const struct node *send = p->crosses ? join_send_of(p->from, graph_node(p->from, node)) : NULL;
    return send ? send->id : node;
}

struct edge prune_edge(struct prune *p, struct edge edge)
{
    int at = edge_map_get(&p->fed, edge), node = copied_node(p, edge.node);
    if (at >= 0 && p->feed[at] < 0)
        p->feed[at] = add_feed(p, at);
    if (at >= 0)
        return (struct edge){p->feed[at], 0};
    return (struct edge){p->copy[node], p->slot[node] + (node == edge.node ? edge.slot : 0)};
}

void prune_connect(struct prune *p)
{
    graph_each(node, p->from) {
        int copy = p->copy[node->id];
        if (copy < 0)
            continue;
        for (int k = 0; k < node->n_inputs; k++) {
            struct edge source = prune_edge(p, node->inputs[k]); /* it may add a node */
            graph_node(p->to, copy)->inputs[p->slot[node->id] + k] = source;
        }
        for (int k = 0; k < node->n_controls; k++) {
            int before = p->copy[copied_node(p, node->controls[k])];
            if (before >= 0 && !feeds_all(&p->fed, graph_node(p->from, node->controls[k])))
                graph_add_control(p->to, graph_node(p->to, copy), before);
        }
    }
}
