/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/join.h"

#include "base/memory.h"
#include "base/str.h"

const struct node *join_send_of(const struct graph *graph, const struct node *node)
{
    if (!node_is(node, "Recv"))
        return NULL;
    const struct node *send = graph_find(graph, node_string(node, "tensor_name"));
    return send && node_is(send, "Send") ? send : NULL;
}

static int copy_node(struct graph *to, const struct node *node, int first, struct error *err)
{
    if (graph_find(to, node->name))
        return error_set(err, ERR_DATA, "%s: is in two parts", node_text(node));
    struct node *copy = graph_add_copy(to, node);
    for (int i = 0; i < node->n_inputs; i++)
        copy->inputs[i].node = node->inputs[i].node + first;
    return 0;
}

static void add_entry(struct graph *to, const struct entry *entry, int first)
{
    const struct entry *before = graph_entry(to, entry->name);
    int n_before = before ? before->n_edges : 0, n = n_before + entry->n_edges;
    struct edge *edges = mem_array((size_t)n + 1, sizeof *edges);
    for (int i = 0; i < n_before; i++)
        edges[i] = before->edges[i];
    for (int i = 0; i < entry->n_edges; i++)
        edges[n_before + i] = (struct edge){entry->edges[i].node + first, entry->edges[i].slot};
    if (before) {
        struct entry *mutable = (struct entry *)(uintptr_t)before;
        mutable->edges = arena_copy(&to->arena, edges, (size_t)n * sizeof *edges);
        mutable->n_edges = n;
    } else {
        graph_add_entry(to, entry->name, edges, n);
    }
    mem_free(edges);
}

static int add_part(struct graph *to, const struct graph *part, struct error *err)
{
    int first = (int)to->nodes.n;
    for (size_t i = 0; i < part->nodes.n; i++)
        if (copy_node(to, graph_node(part, (int)i), first, err))
            return err->code;
    for (size_t i = 0; i < part->nodes.n; i++) {
        const struct node *node = graph_node(part, (int)i);
        for (int k = 0; k < node->n_controls; k++)
            graph_add_control(to, graph_node(to, first + (int)i), first + node->controls[k]);
    }
    for (size_t i = 0; i < part->entries.n; i++)
        add_entry(to, &part->entries.items[i], first);
    for (size_t i = 0; i < part->aliases.n; i++) {
        struct alias alias = part->aliases.items[i];
        alias.edge.node += first;
        if (graph_add_alias(to, alias.name, alias.edge, err))
            return err->code;
    }
    return 0;
}

static int check_pairs(const struct graph *graph, struct error *err)
{
    size_t n_sends = 0, n_received = 0;
    char *received = mem_alloc(graph->nodes.n + 1);
    int code = 0;
    for (size_t i = 0; !code && i < graph->nodes.n; i++) {
        const struct node *node = graph_node(graph, (int)i);
        const struct node *send = join_send_of(graph, node);
        n_sends += node_is(node, "Send");
        if (node_is(node, "Recv") && !send)
            code = error_set(err, ERR_DATA, "%s: its Send, '%s', is in none of the parts",
                             node_text(node), node_string(node, "tensor_name"));
        else if (send && received[send->id])
            code =
                error_set(err, ERR_DATA, "%s: two nodes receive '%s'", node_text(node), send->name);
        if (send && !code)
            n_received += received[send->id] = 1;
    }
    for (size_t i = 0; !code && n_sends > n_received && i < graph->nodes.n; i++) {
        const struct node *node = graph_node(graph, (int)i);
        if (node_is(node, "Send") && !received[i])
            code =
                error_set(err, ERR_DATA, "%s: its Recv is in none of the parts", node_text(node));
    }
    mem_free(received);
    return code;
}

int graph_join(const struct graph *const *parts, int n, struct graph **joined, struct error *err)
{
    struct graph *graph = graph_new(parts[0]->registry);
    int code = 0;
    for (int i = 0; !code && i < n; i++)
        code = add_part(graph, parts[i], err);
    graph_add_history(graph, parts[0]);
    if (!code)
        code = check_pairs(graph, err);
    if (code) {
        graph_free(graph);
        graph = NULL;
    }
    *joined = graph;
    return code;
}

/* ---- reading ---- */

static bool is_part(const struct graph *graph)
{
    for (size_t i = 0; i < graph->made.n; i++)
        if (str_starts(graph->made.items[i], "tf-part "))
            return true;
    return false;
}

/* Sends without a Recv, or the reverse. */
static int64_t n_open(const struct joined *joined)
{
    int64_t n = 0;
    for (size_t i = 0; i < joined->parts.n; i++) {
        const struct graph *part = joined->parts.items[i];
        for (size_t k = 0; k < part->nodes.n; k++) {
            const struct node *node = graph_node(part, (int)k);
            n += node_is(node, "Send") - node_is(node, "Recv");
        }
    }
    return n < 0 ? -n : n;
}

int joined_read(struct stream_reader *reader, const struct registry *registry,
                struct joined *joined, struct error *err)
{
    int64_t expected = 1;
    do {
        struct graph *part;
        int code = graph_read(reader, registry, &part, err);
        if (code)
            return code;
        vec_push(&joined->parts, part);
        if (joined->parts.n == 1 && is_part(part))
            expected = stream_reader_expected(reader);
    } while ((int64_t)joined->parts.n < expected || n_open(joined));
    joined->graph = joined->parts.items[0];
    joined->is_cut = joined->parts.n > 1;
    return joined->is_cut ? graph_join((const struct graph *const *)joined->parts.items,
                                       (int)joined->parts.n, &joined->graph, err)
                          : 0;
}

void joined_release(struct joined *joined)
{
    if (joined->is_cut)
        graph_free(joined->graph);
    for (size_t i = 0; i < joined->parts.n; i++)
        graph_free(joined->parts.items[i]);
    vec_release(&joined->parts);
}
