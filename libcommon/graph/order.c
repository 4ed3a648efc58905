/* SPDX-License-Identifier: Apache-2.0
 *
 * Topological order (Kahn), ties by id through a binary heap; edges NextIteration -> Merge left
 * out.
 */
#include <string.h>

#include "base/heap.h"
#include "base/memory.h"
#include "graph/graph.h"

struct topological_sort {
    const struct graph *graph;
    int *pending;      /* inputs not yet ordered, by node */
    int *first, *next; /* consumers of a node: list heads by node, links by edge */
    int *consumer;     /* by edge */
    struct heap heap;
};

static bool is_less(const void *context, int a, int b)
{
    (void)context;
    return a < b;
}

/* Follows unordered inputs from an unordered node until a node repeats: that is a cycle. */
static int report_cycle(const struct topological_sort *o, struct error *err)
{
    const struct graph *graph = o->graph;
    int id = 0, n = (int)graph->nodes.n;
    while (o->pending[id] == 0)
        id++;
    struct str names = STR_INIT;
    char *seen = mem_array((size_t)n, 1);
    for (int pass = 0; pass < 2;) { /* the first time round only finds a node on the cycle */
        if (seen[id] == pass + 1 && ++pass == 2)
            break;
        seen[id] = (char)(pass + 1);
        if (pass == 1 && names.n < 200)
            str_printf(&names, "%s <- ", graph_node(graph, id)->name);
        const struct node *node = graph_node(graph, id);
        int from = -1;
        for (int i = 0; i < node->n_inputs + node->n_controls && from < 0; i++) {
            struct edge edge = node_dependency(node, i);
            if (edge_exists(edge) && o->pending[edge.node] > 0 &&
                !graph_is_back_edge(graph, node, edge))
                from = edge.node;
        }
        id = from;
    }
    str_append(&names, graph_node(graph, id)->name);
    int code = error_set(err, ERR_DATA, "the graph has a cycle: %s", str_text(&names));
    str_release(&names);
    mem_free(seen);
    return code;
}

int graph_order(const struct graph *graph, int *order, struct error *err)
{
    size_t n = graph->nodes.n, n_edges = 0;
    for (size_t i = 0; i < n; i++)
        n_edges +=
            (size_t)(graph_node(graph, (int)i)->n_inputs + graph_node(graph, (int)i)->n_controls);
    int *memory = mem_array(3 * n + 2 * n_edges, sizeof *memory);
    struct topological_sort o = {.graph = graph,
                                 .pending = memory,
                                 .first = memory + n,
                                 .heap = {.items = memory + 2 * n, .before = is_less},
                                 .next = memory + 3 * n,
                                 .consumer = memory + 3 * n + n_edges};
    memset(o.first, -1, n * sizeof *o.first);
    int edges = 0;
    graph_each(node, o.graph) {
        for (int i = 0; i < node->n_inputs + node->n_controls; i++) {
            struct edge edge = node_dependency(node, i);
            if (!edge_exists(edge) || graph_is_back_edge(o.graph, node, edge))
                continue;
            o.consumer[edges] = node->id;
            o.next[edges] = o.first[edge.node];
            o.first[edge.node] = edges++;
            o.pending[node->id]++;
        }
    }
    for (size_t i = 0; i < n; i++)
        if (o.pending[i] == 0)
            heap_push(&o.heap, (int)i);
    size_t done = 0;
    while (o.heap.n) {
        int id = heap_pop(&o.heap);
        order[done++] = id;
        for (int e = o.first[id]; e >= 0; e = o.next[e])
            if (--o.pending[o.consumer[e]] == 0)
                heap_push(&o.heap, o.consumer[e]);
    }
    int code = done == n ? 0 : report_cycle(&o, err);
    mem_free(memory);
    return code;
}
