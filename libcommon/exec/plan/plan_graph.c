/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of a graph that a request needs, as a graph of its own: everything that the fetches and
 * targets depend on, with each fed edge cut and a Placeholder in its place. Feeding cuts the data
 * edges of one output. When all outputs of a node are fed, its control edges are satisfied by the
 * feeds, and it does not run unless it is a target.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "exec/plan/plan_steps.h"

struct prune {
    struct plan *plan;
    const struct graph *from;
    const struct plan_request *request;
    struct graph_walk walk; /* to the nodes of `from` that are needed */
    int *copy;              /* node of the copy, by node of `from`; -1 */
    int *slot;              /* by node of `from`: which of the group that its copy is for */
    struct edge_map fed;    /* which feed is an edge's */
};

int plan_add_feed(struct graph *graph, const struct plan_feed *feed, const struct node *fed)
{
    struct arena *arena = &graph->arena;
    struct attr attrs[] = {{"dtype", attr_type(feed->type)}, {"shape", attr_shape(&feed->shape)}};
    struct node_spec spec = {.op = "Placeholder",
                             .name = arena_printf(arena, "_feed_%s_%d", fed->name, feed->edge.slot),
                             .attrs = arena_copy(arena, attrs, sizeof attrs),
                             .n_attrs = 2,
                             .file = fed->file,
                             .line = fed->line};
    struct node_output output = {feed->type, false, feed->shape};
    return graph_add_trusted(graph, &spec, &output, 1)->id;
}

static struct edge map_edge(struct prune *p, struct edge edge)
{
    int feed = edge_map_get(&p->fed, edge);
    if (feed >= 0) {
        if (p->plan->feed_nodes[feed] < 0)
            p->plan->feed_nodes[feed] =
                plan_add_feed(p->plan->graph, &p->plan->feeds[feed],
                              graph_node(p->from, p->plan->feeds[feed].edge.node));
        return (struct edge){p->plan->feed_nodes[feed], 0};
    }
    return (struct edge){p->copy[edge.node], p->slot[edge.node] + edge.slot};
}

/* The shape that a Recv brings is perhaps known. */
static void copy_node(struct prune *p, const struct node *node)
{
    struct arena *arena = &p->plan->graph->arena;
    struct node *copy = graph_add_copy(p->plan->graph, node);
    p->copy[node->id] = copy->id;
    if (!p->request->received || !node_is(node, "Recv"))
        return;
    size_t n = (size_t)copy->n_attrs;
    struct attr *attrs = arena_copy(arena, copy->attrs, n * sizeof *attrs);
    const struct shape *shape = &p->request->received[node->id];
    for (size_t i = 0; i < n; i++)
        if (!strcmp(attrs[i].name, "shape"))
            attrs[i].value = attr_shape(arena_copy(arena, shape, sizeof *shape));
    copy->attrs = attrs;
}

/* ---- small values that cross together ---- */

struct group_member {
    const char *tensor; /* by whose names both ends have them in one order */
    int node;
};
typedef VEC(struct group_member) group_members;

static int by_tensor(const void *a, const void *b)
{
    return strcmp(((const struct group_member *)a)->tensor,
                  ((const struct group_member *)b)->tensor);
}

/* Sends, or Recvs, of one group become one node, whose inputs, or outputs, are theirs. */
static void copy_group(struct prune *p, const group_members *members)
{
    struct arena *arena = &p->plan->graph->arena;
    int n = (int)members->n, priority = INT32_MAX;
    const struct node *node = graph_node(p->from, members->items[0].node);
    struct node_output *outputs = arena_array(arena, members->n, sizeof *outputs);
    enum dtype *types = arena_array(arena, members->n, sizeof *types);
    struct shape *shapes = arena_array(arena, members->n, sizeof *shapes);
    const char **names = arena_array(arena, members->n, sizeof *names);
    bool sends = node_is(node, "Send");
    struct node_spec spec = {.op = sends ? "SendGroup" : "RecvGroup",
                             .name = node->name,
                             .n_inputs = sends ? n : 0,
                             .assigned = node->assigned,
                             .file = node->file,
                             .line = node->line};
    spec.inputs = arena_array(arena, members->n, sizeof *spec.inputs); /* connected later */
    for (int i = 0; i < n; i++) {
        node = graph_node(p->from, members->items[i].node);
        struct edge edge = sends ? node->inputs[0] : (struct edge){node->id, 0};
        outputs[i] = graph_node(p->from, edge.node)->outputs[edge.slot];
        types[i] = outputs[i].type;
        shapes[i] = outputs[i].shape;
        names[i] = members->items[i].tensor;
        priority = node_priority(node) < priority ? node_priority(node) : priority;
        p->slot[node->id] = i;
        p->copy[node->id] = (int)p->plan->graph->nodes.n;
    }
    struct attr attrs[] = {{"T", {.kind = ATTR_LIST_TYPE, .n = n, .types = types}},
                           {"_priority", attr_int(priority)},
                           {"names", {.kind = ATTR_LIST_STRING, .n = n, .strings = names}},
                           {"recv_device", *node_attr(node, "recv_device")},
                           {"send_device", *node_attr(node, "send_device")},
                           {"shapes", {.kind = ATTR_LIST_SHAPE, .n = n, .shapes = shapes}},
                           {"tensor_name", attr_string(node_group(node))}};
    spec.attrs = arena_copy(arena, attrs, sizeof attrs);
    spec.n_attrs = sizeof attrs / sizeof *attrs;
    graph_add_trusted(p->plan->graph, &spec, outputs, sends ? 0 : n);
}

static void copy_nodes(struct prune *p)
{
    struct map known = MAP_INIT; /* of groups */
    VEC(group_members) groups = VEC_INIT;
    for (size_t i = 0; i < p->from->nodes.n; i++) {
        const struct node *node = graph_node(p->from, (int)i);
        const char *name = node_group(node);
        int64_t group = (int64_t)groups.n;
        if (p->walk.seen[i] && !name)
            copy_node(p, node);
        if (!p->walk.seen[i] || !name)
            continue;
        name = arena_printf(&p->plan->memory, "%s %s", node->op->def->name, name);
        if (!map_get(&known, name, &group)) {
            map_put(&known, name, group);
            vec_push(&groups, (group_members)VEC_INIT);
        }
        vec_push(&groups.items[group],
                 ((struct group_member){node_string(node, "tensor_name"), node->id}));
    }
    for (size_t i = 0; i < groups.n; i++) {
        group_members *members = &groups.items[i];
        qsort(members->items, members->n, sizeof *members->items, by_tensor);
        if (members->n > 1)
            copy_group(p, members);
        else
            copy_node(p, graph_node(p->from, members->items->node));
        vec_release(&groups.items[i]);
    }
    vec_release(&groups);
    map_release(&known);
}

/* ---- what other parts order ---- */

/* The places of one node, from the first-th on; returns where those of another begin. Three numbers
 * each: input, depth, place, which is negative of a read that is to be copied. */
static size_t mark_node(struct prune *p, const plan_order *order, size_t first, struct error *err)
{
    struct node *node = graph_node(p->plan->graph, p->copy[order->items[first].node]);
    size_t at = first, n = 0;
    while (at < order->n && order->items[at].node == order->items[first].node)
        at++;
    int64_t *places = arena_array(&p->plan->graph->arena, 3 * (at - first) + 1, sizeof *places);
    for (size_t i = first; i < at; i++) {
        const struct plan_place *place = &order->items[i];
        places[n++] = place->input;
        places[n++] = place->depth;
        places[n++] = place->is_copied ? -place->place : place->place;
    }
    struct attr_value value = {.kind = ATTR_LIST_INT, .n = (int)n, .ints = places};
    graph_set_attr(p->plan->graph, node, &(struct attr){PLAN_PLACE, value}, err);
    return at;
}

static int by_node(const void *a, const void *b)
{
    const struct plan_place *x = a, *y = b;
    return x->node != y->node ? (x->node < y->node ? -1 : 1) : x->input - y->input;
}

void plan_order_sort(plan_order *order)
{
    if (order->n)
        qsort(order->items, order->n, sizeof *order->items, by_node);
}

static int mark_order(struct prune *p, const plan_order *order, struct error *err)
{
    struct plan *plan = p->plan;
    plan->fetch_places =
        arena_array(&plan->memory, (size_t)plan->n_fetches + 1, sizeof *plan->fetch_places);
    for (size_t i = 0, next; !err->code && i < order->n; i = next) {
        const struct plan_place *place = &order->items[i];
        next = i + 1;
        if (place->node >= 0 && p->walk.seen[place->node])
            next = mark_node(p, order, i, err);
        else if (place->node < 0 && place->input < plan->n_fetches)
            plan->fetch_places[place->input] = place->place;
    }
    return err->code;
}

static int check_feeds(const struct plan *plan, struct error *err)
{
    for (int i = 0; i < plan->n_feeds; i++) {
        const struct plan_feed *f = &plan->feeds[i];
        const struct node *node = graph_node(plan->source, f->edge.node);
        const struct node_output *output = &node->outputs[f->edge.slot];
        if (output->type != f->type)
            return error_set(err, ERR_DATA, "%s: is %s, but is fed %s", node_text(node),
                             dtype_name(output->type), dtype_name(f->type));
        if (!shape_compatible(&output->shape, &f->shape))
            return error_set(err, ERR_DATA, "%s: is %s, but is fed %s", node_text(node),
                             shape_text_typed(output->type, &output->shape),
                             shape_text_typed(f->type, &f->shape));
    }
    return 0;
}

static int build(struct prune *p, const struct plan_request *request, struct edge *fetch_edges,
                 struct error *err)
{
    struct graph *graph = p->plan->graph;
    const struct node *node;
    for (int i = 0; i < request->n_fetches; i++) {
        if (request->fetches[i].slot == CONTROL_SLOT)
            return error_set(err, ERR_DATA, "%s: has no value to fetch; run it instead",
                             node_text(graph_node(p->from, request->fetches[i].node)));
        if (edge_map_get(&p->fed, request->fetches[i]) < 0)
            graph_walk_to(&p->walk, request->fetches[i].node);
    }
    for (int i = 0; i < request->n_targets; i++)
        graph_walk_to(&p->walk, request->targets[i]);
    while ((node = graph_walk_next(&p->walk, p->from)))
        plan_walk_on(&p->walk, p->from, &p->fed, node);
    /* A source that nobody feeds is found before anything runs. */
    for (size_t i = 0; i < p->from->nodes.n; i++)
        if (p->walk.seen[i] && node_has(node = graph_node(p->from, (int)i), OP_SOURCE))
            return error_set(err, ERR_NOINPUT, "%s: not fed", node_text(node));
    copy_nodes(p);
    for (size_t i = 0; i < p->from->nodes.n; i++) {
        if (!p->walk.seen[i])
            continue;
        struct node *copy = graph_node(graph, p->copy[i]);
        node = graph_node(p->from, (int)i);
        for (int k = 0; k < node->n_inputs; k++)
            copy->inputs[p->slot[i] + k] = map_edge(p, node->inputs[k]);
        for (int k = 0; k < node->n_controls; k++)
            if (!plan_feeds_all(&p->fed, graph_node(p->from, node->controls[k])))
                graph_add_control(graph, copy, p->copy[node->controls[k]]);
    }
    for (int i = 0; i < request->n_fetches; i++)
        fetch_edges[i] = map_edge(p, request->fetches[i]);
    if ((request->order && mark_order(p, request->order, err)) || graph_infer(graph, err))
        return err->code;
    return plan_infer_stacks(graph, err);
}

int plan_make_graph(struct plan *plan, const struct plan_request *request, struct edge *fetch_edges,
                    struct error *err)
{
    size_t n = plan->source->nodes.n;
    struct prune p = {.plan = plan, .from = plan->source, .request = request};
    plan->n_feeds = request->n_feeds;
    plan->feeds =
        arena_copy(&plan->memory, request->feeds, (size_t)request->n_feeds * sizeof *plan->feeds);
    plan->feed_nodes =
        arena_array(&plan->memory, (size_t)request->n_feeds + 1, sizeof *plan->feed_nodes);
    memset(plan->feed_nodes, -1, (size_t)request->n_feeds * sizeof *plan->feed_nodes);
    int code = check_feeds(plan, err);
    if (code)
        return code;
    p.fed = plan_index_feeds(request);
    struct arena memory = ARENA_INIT;
    p.walk = graph_walk_new(&memory, p.from);
    p.copy = mem_array(n + 1, sizeof *p.copy);
    memset(p.copy, -1, n * sizeof *p.copy);
    p.slot = mem_array(n + 1, sizeof *p.slot);
    plan->graph = graph_new(plan->source->registry);
    code = build(&p, request, fetch_edges, err);
    edge_map_release(&p.fed);
    arena_release(&memory);
    mem_free(p.copy);
    mem_free(p.slot);
    return code;
}

/* ---- the device's passes over it ---- */

/* The graph before is kept: it has the names and attributes. */
static void take_fused(struct plan *plan, struct fusion *fused, struct edge *fetch_edges)
{
    for (int i = 0; i < plan->n_fetches; i++)
        fetch_edges[i] = fusion_edge(fused, fetch_edges[i]);
    for (int i = 0; i < plan->n_feeds; i++)
        if (plan->feed_nodes[i] >= 0)
            plan->feed_nodes[i] = fused->node_of[plan->feed_nodes[i]];
    vec_push(&fused->before, plan->graph);
    plan->graph = fused->graph;
    plan->wholes = fused->before;
    fused->graph = NULL;
    fused->before = (graph_vec)VEC_INIT;
}

/* A run that looks at each op's result, or runs items one by one, gets them as they are. */
void plan_fuse(struct plan *plan, struct edge *fetch_edges)
{
    struct fuse_options options = {.kernels = plan->options.kernels,
                                   .device = plan->options.device->type,
                                   .keep = fetch_edges,
                                   .n_keep = plan->n_fetches,
                                   .without = plan->options.without};
    struct fusion fused;
    if (plan->options.cut == CUT_ITEMS || plan->options.check_numerics)
        return;
    options.without |= (unsigned)plan->options.device->exact << DEVICE_PASS_SUMS;
    fuse_graph(plan->graph, &options, &fused, NULL);
    if (fused.graph)
        take_fused(plan, &fused, fetch_edges);
    fusion_release(&fused);
}
