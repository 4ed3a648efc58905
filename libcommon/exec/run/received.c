/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph is put together as it was before it was cut: who took what a Recv gives takes what its
 * Send is given, and shapes are inferred through all of it at once.
 */
#include "exec/run/received.h"

#include <string.h>

#include "base/memory.h"
#include "graph/infer.h"
#include "graph/join.h"

struct uncut {
    const struct graph *from;
    const struct plan_request *request;
    const bool *needed; /* by node of `from` */
    struct edge_map fed;
    struct graph *to;
    int *copy; /* node of `to`, by node of `from`; -1 */
    int *feed; /* node of `to`, by feed; -1: not yet */
};

static int add_feed(struct uncut *u, int i)
{
    const struct plan_feed *feed = &u->request->feeds[i];
    struct arena *arena = &u->to->arena;
    struct attr *attrs = arena_array(arena, 2, sizeof *attrs);
    attrs[0] = (struct attr){"dtype", attr_type(feed->type)};
    attrs[1] = (struct attr){"shape", attr_shape(&feed->shape)};
    struct node_spec spec = {.op = "Placeholder",
                             .name = arena_printf(arena, "_feed_%d", i),
                             .attrs = attrs,
                             .n_attrs = 2};
    struct node_output output = {feed->type, false, feed->shape};
    return graph_add_trusted(u->to, &spec, &output, 1)->id;
}

/* Where a value of the cut graph comes from in the whole one. */
static struct edge source_of(struct uncut *u, struct edge edge)
{
    for (;;) {
        int feed = edge_map_get(&u->fed, edge);
        if (feed >= 0 && u->feed[feed] < 0)
            u->feed[feed] = add_feed(u, feed);
        if (feed >= 0)
            return (struct edge){u->feed[feed], 0};
        const struct node *send = join_send_of(u->from, graph_node(u->from, edge.node));
        if (!send)
            return (struct edge){u->copy[edge.node], edge.slot};
        edge = send->inputs[0];
    }
}

/* Controls say nothing of shapes. */
static void put_together(struct uncut *u)
{
    for (size_t i = 0; i < u->from->nodes.n; i++) {
        const struct node *node = graph_node(u->from, (int)i);
        if (u->needed[i] && !node_is(node, "Send") && !join_send_of(u->from, node))
            u->copy[i] = graph_add_copy(u->to, node)->id;
    }
    for (size_t i = 0; i < u->from->nodes.n; i++) {
        struct node *copy = u->copy[i] < 0 ? NULL : graph_node(u->to, u->copy[i]);
        for (int k = 0; copy && k < copy->n_inputs; k++)
            copy->inputs[k] = source_of(u, graph_node(u->from, (int)i)->inputs[k]);
    }
}

static struct shape *find_shapes(struct uncut *u)
{
    struct error ignored = ERROR_INIT; /* the plan of the node's part has the same */
    put_together(u);
    if (graph_infer(u->to, &ignored))
        return NULL;
    struct shape *shapes = mem_array(u->from->nodes.n + 1, sizeof *shapes);
    for (size_t i = 0; i < u->from->nodes.n; i++) {
        const struct node *node = graph_node(u->from, (int)i);
        if (!u->needed[i] || !node_is(node, "Recv"))
            continue;
        struct edge source = source_of(u, (struct edge){node->id, 0});
        shapes[i] = graph_node(u->to, source.node)->outputs[source.slot].shape;
    }
    return shapes;
}

struct shape *received_shapes(const struct graph *graph, const struct plan_request *request,
                              const bool *needed)
{
    size_t n = graph->nodes.n + 1;
    struct uncut u = {
        .from = graph, .request = request, .needed = needed, .fed = plan_index_feeds(request)};
    u.copy = mem_array(n, sizeof *u.copy);
    u.feed = mem_array((size_t)request->n_feeds + 1, sizeof *u.feed);
    memset(u.copy, -1, n * sizeof *u.copy);
    memset(u.feed, -1, ((size_t)request->n_feeds + 1) * sizeof *u.feed);
    u.to = graph_new(graph->registry);
    struct shape *shapes = find_shapes(&u);
    graph_free(u.to);
    edge_map_release(&u.fed);
    mem_free(u.copy);
    mem_free(u.feed);
    return shapes;
}
