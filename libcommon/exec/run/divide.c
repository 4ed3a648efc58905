/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/run/divide.h"

#include <string.h>

#include "base/memory.h"
#include "exec/plan/prune.h"
#include "graph/access_nodes.h"
#include "graph/frames.h"
#include "graph/infer.h"
#include "graph/join.h"

void request_divide(const struct graph *graph, const struct plan_request *request, const int *place,
                    struct share *shares)
{
    struct prune p;
    prune_init(&p, graph, request, true);
    bool *is_target = mem_array(graph->nodes.n + 1, sizeof *is_target);
    for (int i = 0; i < request->n_targets; i++) {
        vec_push(&shares[place[request->targets[i]]].targets, request->targets[i]);
        is_target[request->targets[i]] = true;
    }
    for (int i = 0; i < request->n_fetches; i++)
        vec_push(&shares[place[request->fetches[i].node]].fetches, i);
    for (int i = 0; i < request->n_feeds; i++)
        vec_push(&shares[place[request->feeds[i].node]].feeds, i);
    graph_each(node, graph) {
        const struct node *send = p.needed[node->id] ? join_send_of(graph, node) : NULL;
        if (send && !is_target[send->id]) {
            vec_push(&shares[place[send->id]].targets, send->id);
            is_target[send->id] = true;
        }
    }
    mem_free(is_target);
    graph_free(p.to);
    prune_release(&p);
}

void share_take_order(const struct share *share, const plan_order *whole, plan_order *own)
{
    for (size_t i = 0; i < whole->n; i++) {
        struct plan_place place = whole->items[i];
        if (place.node >= 0)
            vec_push(own, place);
        for (size_t k = 0; place.node < 0 && k < share->fetches.n; k++) {
            place.input = (int)k;
            if (share->fetches.items[k] == whole->items[i].input)
                vec_push(own, place);
        }
    }
}

bool share_is_idle(const struct share *share)
{
    return !share->fetches.n && !share->targets.n;
}

void share_release(struct share *share)
{
    vec_release(&share->feeds);
    vec_release(&share->fetches);
    vec_release(&share->targets);
}

/* ---- facts that one part cannot see of the others ---- */

struct uncut {
    struct prune prune; /* all parts, joined into one graph */
    int *source;        /* by node of that graph: the node of the parts; -1: a feed */
    size_t n_nodes;     /* before fetches are added as reads */
    int *fetch;         /* by node that was added: its fetch */
};

/* A Send is a read of its input, which may be a variable. */
static int copy_send(struct prune *p, const struct node *send)
{
    struct edge sent = send->inputs[0];
    struct node_output output = graph_node(p->from, sent.node)->outputs[sent.slot];
    struct attr attr = {"T", attr_type(output.type)};
    struct node_spec spec = {.op = "Identity",
                             .name = send->name,
                             .inputs = &(struct edge){-1, 0},
                             .n_inputs = 1,
                             .attrs = arena_copy(&p->to->arena, &attr, sizeof attr),
                             .n_attrs = 1};
    output.is_ref = false;
    return graph_add_trusted(p->to, &spec, &output, 1)->id;
}

struct uncut *uncut_new(const struct graph *graph, const struct plan_request *request)
{
    struct uncut *u = mem_alloc(sizeof *u);
    struct prune *p = &u->prune;
    size_t n = graph->nodes.n + (size_t)request->n_feeds + (size_t)request->n_fetches;
    prune_init(p, graph, request, true);
    u->source = arena_array(&p->memory, n + 1, sizeof *u->source);
    memset(u->source, -1, n * sizeof *u->source);
    graph_each(node, graph) {
        if (!p->needed[node->id] || join_send_of(graph, node))
            continue;
        int copy = node_is(node, "Send") ? copy_send(p, node) : graph_add_copy(p->to, node)->id;
        p->copy[node->id] = copy;
        u->source[copy] = node->id;
    }
    prune_connect(p);
    return u;
}

void uncut_free(struct uncut *u)
{
    if (!u)
        return;
    graph_free(u->prune.to);
    prune_release(&u->prune);
    mem_free(u);
}

struct shape *uncut_shapes(struct uncut *u)
{
    struct error ignored = ERROR_INIT; /* the plan of the node's part reports the same error */
    if (graph_infer(u->prune.to, &ignored))
        return NULL;
    struct shape *shapes = mem_array(u->prune.from->nodes.n + 1, sizeof *shapes);
    for (size_t i = 0; i < u->prune.from->nodes.n; i++) {
        if (!u->prune.needed[i] || !node_is(graph_node(u->prune.from, (int)i), "Recv"))
            continue;
        struct edge source = prune_edge(&u->prune, (struct edge){(int)i, 0});
        shapes[i] = graph_node(u->prune.to, source.node)->outputs[source.slot].shape;
    }
    return shapes;
}

/* A fetch of a variable is a read by a node of its own. */
static void add_fetches(struct uncut *u)
{
    u->n_nodes = u->prune.to->nodes.n;
    u->fetch =
        arena_array(&u->prune.memory, (size_t)u->prune.request->n_fetches + 1, sizeof *u->fetch);
    for (int i = 0; i < u->prune.request->n_fetches; i++) {
        struct edge edge = prune_edge(&u->prune, u->prune.request->fetches[i]);
        struct node_output output = graph_node(u->prune.to, edge.node)->outputs[edge.slot];
        struct node_spec spec = {.op = "Identity",
                                 .name = graph_unique_name(u->prune.to, "fetch"),
                                 .inputs = &edge,
                                 .n_inputs = 1};
        if (!output.is_ref)
            continue;
        output.is_ref = false;
        u->fetch[graph_add_trusted(u->prune.to, &spec, &output, 1)->id - (int)u->n_nodes] = i;
    }
}

int uncut_order(struct uncut *u, plan_order *order, struct error *err)
{
    struct error ignored = ERROR_INIT; /* the plan of the node's part reports the same error */
    struct arena memory = ARENA_INIT;
    struct access_order found;
    struct frames *frames;
    add_fetches(u);
    const struct graph *whole = u->prune.to;
    if (frames_new(whole, &frames, &ignored))
        return 0;
    const char **names = arena_array(&memory, whole->nodes.n + 1, sizeof *names);
    const int *variables = access_variables(whole, &memory);
    struct access_graph graph = {.n = (int)whole->nodes.n, .names = names};
    access_add_frames(&graph, whole, frames, &memory);
    graph_each(node, whole) {
        names[node->id] = node->name;
        access_add_node(&graph, whole, variables, node);
    }
    int code = access_order_find(&graph, &found, err);
    bool *copied = arena_array(&memory, graph.accesses.n + 1, sizeof *copied);
    for (size_t i = 0; !code && i < found.copies.n; i++)
        copied[found.copies.items[i].access] = true;
    for (size_t i = 0; !code && i < found.places.n; i++) {
        const struct access_place *at = &found.places.items[i];
        const struct access *access = &graph.accesses.items[at->access];
        int node = access->node, source = u->source[node];
        const struct plan_place place = {.node = source,
                                         .input = source < 0 ? u->fetch[node - (int)u->n_nodes]
                                                             : access->input,
                                         .depth = frames->frames.items[at->frame].depth,
                                         .place = at->place,
                                         .is_copied = copied[at->access]};
        vec_push(order, place);
    }
    access_order_release(&found);
    access_graph_release(&graph);
    frames_free(frames);
    arena_release(&memory);
    return code;
}
