/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/join.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/str.h"

const struct node *join_send_of(const struct graph *graph, const struct node *node)
{
    if (!node_is(node, "Recv"))
        return NULL;
    const struct node *send = graph_find(graph, node_string(node, "tensor_name"));
    return send && node_is(send, "Send") ? send : NULL;
}

static int join_part(struct graph *to, const struct graph *part, struct error *err)
{
    int first = (int)to->nodes.n;
    graph_each(node, part) {
        if (graph_find(to, node->name))
            return error_set(err, ERR_DATA, "%s: is in two parts", node_text(node));
        struct node *copy = graph_add_copy(to, node);
        for (int j = 0; j < node->n_inputs; j++)
            copy->inputs[j].node = node->inputs[j].node + first;
    }
    graph_each(node, part)
        for (int k = 0; k < node->n_controls; k++)
            graph_add_control(to, graph_node(to, first + node->id), first + node->controls[k]);
    vec_each(entry, &part->entries) {
        const struct entry *before = graph_entry(to, entry->name);
        int n_before = before ? before->n_edges : 0, n = n_before + entry->n_edges;
        struct edge *edges = mem_array((size_t)n + 1, sizeof *edges);
        for (int j = 0; j < n_before; j++)
            edges[j] = before->edges[j];
        for (int j = 0; j < entry->n_edges; j++)
            edges[n_before + j] = (struct edge){entry->edges[j].node + first, entry->edges[j].slot};
        if (before) {
            struct entry *mutable = (struct entry *)(uintptr_t)before;
            mutable->edges = arena_copy(&to->arena, edges, (size_t)n * sizeof *edges);
            mutable->n_edges = n;
        } else {
            graph_add_entry(to, entry->name, edges, n);
        }
        mem_free(edges);
    }
    for (size_t i = 0; i < part->aliases.n; i++) {
        struct alias alias = part->aliases.items[i];
        alias.edge.node += first;
        if (graph_add_alias(to, alias.name, alias.edge, err))
            return err->code;
    }
    return 0;
}

/* ---- the order of fetches ---- */

struct fetch_place {
    long position; /* in the original entry */
    int at;        /* in this one */
    struct edge edge;
};

/* Returns the edge's original position; 0: its node has none, as its entry is of one part only. */
static long position_of(const struct graph *graph, const struct entry *entry, struct edge edge)
{
    const struct attr_value *notes = node_attr(graph_node(graph, edge.node), JOIN_ORDER);
    size_t length = strlen(entry->name);
    for (int i = 0; notes && notes->kind == ATTR_LIST_STRING && i < notes->n; i++) {
        const char *note = notes->strings[i];
        char *end;
        if (strncmp(note, entry->name, length) != 0 || note[length] != ':' ||
            strtol(note + length + 1, &end, 10) != edge.slot || *end != ':')
            continue;
        return strtol(end + 1, NULL, 10);
    }
    return 0;
}

static int by_position(const void *a, const void *b)
{
    const struct fetch_place *x = a, *y = b;
    return x->position != y->position ? (x->position < y->position ? -1 : 1) : x->at - y->at;
}

int graph_join(const struct graph *const *parts, int n, struct graph **joined, struct error *err)
{
    struct graph *graph = graph_new(parts[0]->registry);
    int code = 0;
    for (int i = 0; !code && i < n; i++)
        code = join_part(graph, parts[i], err);
    graph_add_history(graph, parts[0]);
    for (size_t i = 0; !code && i < graph->entries.n; i++) {
        struct entry *entry = &graph->entries.items[i];
        struct edge *edges = arena_array(&graph->arena, (size_t)entry->n_edges + 1, sizeof *edges);
        struct fetch_place *placed = mem_array((size_t)entry->n_edges + 1, sizeof *placed);
        for (int j = 0; j < entry->n_edges; j++)
            placed[j] = (struct fetch_place){position_of(graph, entry, entry->edges[j]), j,
                                             entry->edges[j]};
        qsort(placed, (size_t)entry->n_edges, sizeof *placed, by_position);
        for (int j = 0; j < entry->n_edges; j++)
            edges[j] = placed[j].edge;
        entry->edges = edges;
        mem_free(placed);
    }
    if (!code) {
        size_t n_sends = 0, n_received = 0;
        char *received = mem_alloc(graph->nodes.n + 1);
        for (size_t i = 0; !code && i < graph->nodes.n; i++) {
            const struct node *node = graph_node(graph, (int)i);
            const struct node *send = join_send_of(graph, node);
            n_sends += node_is(node, "Send");
            if (node_is(node, "Recv") && !send)
                code = error_set(err, ERR_DATA, "%s: its Send, '%s', is in none of the parts",
                                 node_text(node), node_string(node, "tensor_name"));
            else if (send && received[send->id])
                code = error_set(err, ERR_DATA, "%s: two nodes receive '%s'", node_text(node),
                                 send->name);
            if (send && !code)
                n_received += received[send->id] = 1;
        }
        for (size_t i = 0; !code && n_sends > n_received && i < graph->nodes.n; i++) {
            const struct node *node = graph_node(graph, (int)i);
            if (node_is(node, "Send") && !received[i])
                code = error_set(err, ERR_DATA, "%s: its Recv is in none of the parts",
                                 node_text(node));
        }
        mem_free(received);
    }
    if (code) {
        graph_free(graph);
        graph = NULL;
    }
    *joined = graph;
    return code;
}

/* ---- reading ---- */

int stream_graph_read(struct stream_reader *reader, const struct registry *registry,
                      struct stream_graph *joined, struct error *err)
{
    int64_t expected = 1, open = 0; /* Sends without a Recv, or the reverse */
    do {
        struct graph *part;
        int code = graph_read(reader, registry, &part, err);
        if (code)
            return code;
        vec_push(&joined->parts, part);
        for (size_t i = 0; joined->parts.n == 1 && i < part->made.n; i++)
            if (str_starts(part->made.items[i], "tf-part "))
                expected = stream_reader_expected(reader);
        graph_each(node, part)
            open += node_is(node, "Send") - node_is(node, "Recv");
    } while ((int64_t)joined->parts.n < expected || open);
    joined->graph = joined->parts.items[0];
    joined->is_cut = joined->parts.n > 1;
    return joined->is_cut ? graph_join((const struct graph *const *)joined->parts.items,
                                       (int)joined->parts.n, &joined->graph, err)
                          : 0;
}

void stream_graph_release(struct stream_graph *joined)
{
    if (joined->is_cut)
        graph_free(joined->graph);
    for (size_t i = 0; i < joined->parts.n; i++)
        graph_free(joined->parts.items[i]);
    vec_release(&joined->parts);
}
