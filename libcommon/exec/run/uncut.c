/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/run/uncut.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/access_nodes.h"
#include "graph/frames.h"
#include "graph/infer.h"
#include "graph/join.h"

struct uncut {
    const struct graph *from;
    const struct plan_request *request;
    const bool *needed; /* by node of `from` */
    struct edge_map fed;
    struct graph *to;
    int *copy;      /* node of `to`, by node of `from`; -1 */
    int *source;    /* the reverse; -1 of what is fed */
    int *feed;      /* node of `to`, by feed; -1: not yet */
    size_t n_nodes; /* of `to`, when fetches are added as reads: those come behind */
    int *fetch;     /* by such a node: which fetch it is */
};

/* The edge of the whole graph that a value of the cut graph comes from. */
static struct edge source_of(struct uncut *u, struct edge edge)
{
    int feed = edge_map_get(&u->fed, edge);
    if (feed >= 0 && u->feed[feed] < 0)
        u->feed[feed] = plan_add_feed(u->to, &u->request->feeds[feed],
                                      graph_node(u->from, u->request->feeds[feed].edge.node));
    if (feed >= 0)
        return (struct edge){u->feed[feed], 0};
    const struct node *send = join_send_of(u->from, graph_node(u->from, edge.node));
    return (struct edge){u->copy[send ? send->id : edge.node], send ? 0 : edge.slot};
}

/* A Send reads what it sends: of a variable, too. */
static int copy_send(struct uncut *u, const struct node *send)
{
    struct edge sent = send->inputs[0];
    struct node_output output = graph_node(u->from, sent.node)->outputs[sent.slot];
    struct attr attr = {"T", attr_type(output.type)};
    struct node_spec spec = {.op = "Identity",
                             .name = send->name,
                             .inputs = &(struct edge){-1, 0},
                             .n_inputs = 1,
                             .attrs = arena_copy(&u->to->arena, &attr, sizeof attr),
                             .n_attrs = 1};
    output.is_ref = false;
    return graph_add_trusted(u->to, &spec, &output, 1)->id;
}

static void copy_nodes(struct uncut *u)
{
    for (size_t i = 0; i < u->from->nodes.n; i++) {
        const struct node *node = graph_node(u->from, (int)i);
        if (u->needed[i] && !join_send_of(u->from, node))
            u->copy[i] =
                node_is(node, "Send") ? copy_send(u, node) : graph_add_copy(u->to, node)->id;
    }
}

static void bind_node(struct uncut *u, const struct node *node)
{
    struct node *copy = graph_node(u->to, u->copy[node->id]);
    for (int k = 0; k < node->n_inputs; k++) {
        struct edge source = source_of(u, node->inputs[k]); /* it may add a node */
        copy->inputs[k] = source;
    }
    for (int k = 0; k < node->n_controls; k++) {
        const struct node *before = graph_node(u->from, node->controls[k]);
        const struct node *send = join_send_of(u->from, before);
        int at = u->copy[send ? send->id : before->id];
        if (at >= 0 && !plan_feeds_all(&u->fed, before))
            graph_add_control(u->to, copy, at);
    }
}

struct uncut *uncut_new(const struct graph *graph, const struct plan_request *request,
                        const bool *needed)
{
    struct uncut *u = mem_alloc(sizeof *u);
    size_t n = graph->nodes.n + 1, n_feeds = (size_t)request->n_feeds + 1;
    *u = (struct uncut){
        .from = graph, .request = request, .needed = needed, .fed = plan_index_feeds(request)};
    u->copy = mem_array(n, sizeof *u->copy);
    u->feed = mem_array(n_feeds, sizeof *u->feed);
    memset(u->copy, -1, n * sizeof *u->copy);
    memset(u->feed, -1, n_feeds * sizeof *u->feed);
    u->to = graph_new(graph->registry);
    copy_nodes(u);
    size_t n_all = n + n_feeds + (size_t)request->n_fetches;
    u->source = mem_array(n_all, sizeof *u->source);
    memset(u->source, -1, n_all * sizeof *u->source);
    for (size_t i = 0; i < graph->nodes.n; i++) {
        if (u->copy[i] < 0)
            continue;
        u->source[u->copy[i]] = (int)i;
        bind_node(u, graph_node(graph, (int)i));
    }
    return u;
}

void uncut_free(struct uncut *u)
{
    if (!u)
        return;
    graph_free(u->to);
    edge_map_release(&u->fed);
    mem_free(u->copy);
    mem_free(u->source);
    mem_free(u->feed);
    mem_free(u->fetch);
    mem_free(u);
}

/* ---- shapes ---- */

struct shape *uncut_shapes(struct uncut *u)
{
    struct error ignored = ERROR_INIT; /* the plan of the node's part has the same */
    if (graph_infer(u->to, &ignored))
        return NULL;
    struct shape *shapes = mem_array(u->from->nodes.n + 1, sizeof *shapes);
    for (size_t i = 0; i < u->from->nodes.n; i++) {
        if (!u->needed[i] || !node_is(graph_node(u->from, (int)i), "Recv"))
            continue;
        struct edge source = source_of(u, (struct edge){(int)i, 0});
        shapes[i] = graph_node(u->to, source.node)->outputs[source.slot].shape;
    }
    return shapes;
}

/* ---- the order of reads and writes ---- */

/* A fetch of a variable is a read, too, by a node of its own. */
static void add_fetches(struct uncut *u)
{
    u->n_nodes = u->to->nodes.n;
    u->fetch = mem_array((size_t)u->request->n_fetches + 1, sizeof *u->fetch);
    for (int i = 0; i < u->request->n_fetches; i++) {
        struct edge edge = source_of(u, u->request->fetches[i]);
        struct node_output output = graph_node(u->to, edge.node)->outputs[edge.slot];
        struct node_spec spec = {.op = "Identity",
                                 .name = graph_unique_name(u->to, "fetch"),
                                 .inputs = &edge,
                                 .n_inputs = 1};
        if (!output.is_ref)
            continue;
        output.is_ref = false;
        u->fetch[graph_add_trusted(u->to, &spec, &output, 1)->id - (int)u->n_nodes] = i;
    }
}

static void describe(const struct uncut *u, const struct frames *frames, const int *variables,
                     struct access_graph *graph, struct arena *memory)
{
    size_t n = u->to->nodes.n, n_frames = frames->frames.n;
    const char **names = arena_array(memory, n + 1, sizeof *names);
    int *parent = arena_array(memory, n_frames + 1, sizeof *parent);
    int *enters = arena_array(memory, n + 1, sizeof *enters);
    *graph = (struct access_graph){.n = (int)n,
                                   .names = names,
                                   .frame = frames->frame,
                                   .parent = parent,
                                   .enters = enters,
                                   .n_frames = (int)n_frames};
    for (size_t i = 0; i < n_frames; i++)
        parent[i] = frames->frames.items[i].parent;
    for (size_t i = 0; i < n; i++) {
        names[i] = graph_node(u->to, (int)i)->name;
        if (node_is(graph_node(u->to, (int)i), "Enter"))
            enters[i] = frames_output(frames, graph_node(u->to, (int)i));
        access_add_node(graph, u->to, variables, graph_node(u->to, (int)i));
    }
    access_add_conditions(graph, u->to, frames, memory);
}

static void take_order(const struct uncut *u, const struct access_graph *graph,
                       const struct frames *frames, const struct access_order *found,
                       plan_order *order)
{
    bool *copied = mem_alloc(graph->accesses.n + 1);
    for (size_t i = 0; i < found->copies.n; i++)
        copied[found->copies.items[i].access] = true;
    vec_each(at, &found->places) {
        const struct access *access = &graph->accesses.items[at->access];
        int node = access->node;
        bool is_fetch = u->source[node] < 0;
        struct plan_place place = {.node = u->source[node],
                                   .input =
                                       is_fetch ? u->fetch[node - (int)u->n_nodes] : access->input,
                                   .depth = frames->frames.items[at->frame].depth,
                                   .place = at->place,
                                   .is_copied = copied[at->access]};
        vec_push(order, place);
    }
    mem_free(copied);
    plan_order_sort(order);
}

int uncut_order(struct uncut *u, plan_order *order, struct error *err)
{
    struct error ignored = ERROR_INIT; /* the plan of the node's part has the same */
    struct arena memory = ARENA_INIT;
    struct access_graph graph;
    struct access_order found;
    struct frames *frames;
    add_fetches(u);
    if (frames_new(u->to, &frames, &ignored))
        return 0;
    const int *variables = access_variables(u->to, &memory);
    describe(u, frames, variables, &graph, &memory);
    int code = access_order_find(&graph, &found, err);
    if (!code)
        take_order(u, &graph, frames, &found, order);
    access_order_release(&found);
    access_graph_release(&graph);
    frames_free(frames);
    arena_release(&memory);
    return code;
}
