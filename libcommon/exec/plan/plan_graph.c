/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph of a plan: what its request needs, with what is known of the values that come from
 * other parts, and of the order that all parts have agreed on.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "exec/plan/plan_steps.h"
#include "exec/plan/prune.h"

/* Copies a node; a Recv gets the shape that it will receive, if that is known. */
static void copy_node(struct prune *p, const struct node *node)
{
    struct error ignored = ERROR_INIT; /* the Recv has such an attribute */
    struct node *copy = graph_add_copy(p->to, node);
    p->copy[node->id] = copy->id;
    if (p->request->received && node_is(node, "Recv"))
        graph_set_attr(p->to, copy,
                       &(struct attr){"shape", attr_shape(&p->request->received[node->id])},
                       &ignored);
}

/* ---- small values that are sent together ---- */

struct group_member {
    const char *tensor; /* sorted by these names, both ends have the same order */
    int node;
};
typedef VEC(struct group_member) group_members;

static int by_tensor(const void *a, const void *b)
{
    return strcmp(((const struct group_member *)a)->tensor,
                  ((const struct group_member *)b)->tensor);
}

/* Merges the Sends, or Recvs, of a group into one node with all their inputs, or outputs. */
static void copy_group(struct prune *p, const group_members *members)
{
    struct arena *arena = &p->to->arena;
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
        p->copy[node->id] = (int)p->to->nodes.n;
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
    graph_add_trusted(p->to, &spec, outputs, sends ? 0 : n);
}

static void copy_nodes(struct prune *p)
{
    struct map known = MAP_INIT; /* by name of a group */
    VEC(group_members) groups = VEC_INIT;
    graph_each(node, p->from) {
        const char *name = node_group(node);
        int64_t group = (int64_t)groups.n;
        if (p->needed[node->id] && !name)
            copy_node(p, node);
        if (!p->needed[node->id] || !name)
            continue;
        name = arena_printf(&p->memory, "%s %s", node->op->def->name, name);
        if (!map_get(&known, name, &group)) {
            map_put(&known, name, group);
            vec_push_in(&p->memory, &groups, (group_members)VEC_INIT);
        }
        vec_push_in(&p->memory, &groups.items[group],
                    ((struct group_member){node_string(node, "tensor_name"), node->id}));
    }
    vec_each(members, &groups) {
        qsort(members->items, members->n, sizeof *members->items, by_tensor);
        if (members->n > 1)
            copy_group(p, members);
        else
            copy_node(p, graph_node(p->from, members->items->node));
    }
    map_release(&known);
}

/* ---- orders set by other parts ---- */

typedef VEC(int64_t) place_vec;

/* Marks nodes with their places, three numbers each: input, depth, place; a negative place is a
 * read that is to be copied. */
static int mark_order(struct plan *plan, struct prune *p, const plan_order *order,
                      struct error *err)
{
    place_vec *marks = arena_array(&p->memory, p->to->nodes.n + 1, sizeof *marks);
    plan->fetch_places =
        arena_array(&plan->memory, (size_t)plan->n_fetches + 1, sizeof *plan->fetch_places);
    vec_each(place, order) {
        if (place->node < 0 && place->input < plan->n_fetches)
            plan->fetch_places[place->input] = place->place;
        if (place->node < 0 || !p->needed[place->node])
            continue;
        const int64_t numbers[] = {p->slot[place->node] + place->input, place->depth,
                                   place->is_copied ? -place->place : place->place};
        for (int i = 0; i < 3; i++)
            vec_push_in(&p->to->arena, &marks[p->copy[place->node]], numbers[i]);
    }
    for (size_t i = 0; i < p->to->nodes.n && !err->code; i++) {
        struct attr_value value = {
            .kind = ATTR_LIST_INT, .n = (int)marks[i].n, .ints = marks[i].items};
        if (value.n)
            graph_set_attr(p->to, graph_node(p->to, (int)i), &(struct attr){PLAN_PLACE, value},
                           err);
    }
    return err->code;
}

/* ---- stacks ---- */

/* The shapes of elements of a step's stacks: if all pushed elements have one shape, so has a popped
 * one. A script's graph says less about this than a plan that knows the shapes of feeds. */

#define ROUNDS_MAX 4 /* a popped element may decide the shape of what is pushed elsewhere */

enum { NO_STACK = -2, UNKNOWN_STACK = -1 };

/* Finds the maker of the stack whose handle the node has, through Enter, Switch and others that
 * pass it on. It is unknown behind a Merge, which may pass either of two, and a stack of stacks. */
static int stack_of(const struct graph *graph, const struct node *node)
{
    struct edge handle = node->n_inputs ? node->inputs[0] : EDGE_NONE;
    if (!node->n_inputs || !node_has(node, OP_STATEFUL) ||
        graph_node(graph, handle.node)->outputs[handle.slot].type != RESOURCE)
        return NO_STACK;
    do
        node = graph_node(graph, node->inputs[0].node);
    while (!node_has(node, OP_STATEFUL) && (node->n_inputs == 1 || node_is(node, "Switch")));
    return node_makes_resource(node) ? node->id : UNKNOWN_STACK;
}

/* What is pushed to a stack. */
struct pushed {
    bool any;
    struct shape shape; /* common to all elements */
};

/* Finds, by maker, what is pushed to each stack. Returns false if one of them is unknown. */
static bool find_pushed(const struct graph *graph, struct pushed *all)
{
    graph_each(node, graph) {
        int stack = node->n_inputs == 2 ? stack_of(graph, node) : NO_STACK;
        if (stack == UNKNOWN_STACK)
            return false;
        if (stack == NO_STACK)
            continue;
        struct edge edge = node->inputs[1];
        struct shape shape = graph_node(graph, edge.node)->outputs[edge.slot].shape;
        bool is_common = !all[stack].any || shape_equal(&all[stack].shape, &shape);
        all[stack] = (struct pushed){true, is_common ? shape : SHAPE_ANY};
    }
    return true;
}

/* Gives popped values the shapes of what is pushed. Returns whether there are any new ones. */
static bool set_popped(struct graph *graph, const struct pushed *all, struct error *err)
{
    bool found = false;
    for (size_t i = 0; i < graph->nodes.n && !err->code; i++) {
        struct node *node = graph_node(graph, (int)i);
        int stack = node->n_inputs == 1 ? stack_of(graph, node) : NO_STACK;
        if (stack < 0 || !all[stack].any || !shape_is_known(&all[stack].shape) ||
            !node_attr(node, "shape") || shape_is_known(&node->outputs[0].shape))
            continue;
        found = true;
        graph_set_attr(graph, node, &(struct attr){"shape", attr_shape(&all[stack].shape)}, err);
    }
    return found;
}

static int infer_stacks(struct graph *graph, struct error *err)
{
    struct arena memory = ARENA_INIT;
    bool any = false;
    graph_each(node, graph) {
        any |= node_makes_resource(node);
    }
    for (int round = 0; any && round < ROUNDS_MAX && !err->code; round++) {
        struct pushed *all = arena_array(&memory, graph->nodes.n, sizeof *all);
        any = find_pushed(graph, all) && set_popped(graph, all, err);
        if (any && !err->code)
            graph_infer(graph, err);
    }
    arena_release(&memory);
    return err->code;
}

/* ---- the graph ---- */

int plan_check_fed(const struct node *node, const struct node_output *output, enum dtype type,
                   const struct shape *shape, struct error *err)
{
    if (output->type == type && shape_compatible(&output->shape, shape))
        return 0;
    return error_set(err, ERR_DATA, "%s: is %s, but is fed %s", node_text(node),
                     shape_text_typed(output->type, &output->shape), shape_text_typed(type, shape));
}

static int build(struct plan *plan, struct prune *p, struct edge *fetch_edges, struct error *err)
{
    const struct plan_request *request = p->request;
    for (int i = 0; i < request->n_fetches; i++)
        if (request->fetches[i].slot == CONTROL_SLOT)
            return error_set(err, ERR_DATA, "%s: has no value to fetch; run it instead",
                             node_text(graph_node(p->from, request->fetches[i].node)));
    /* Fail before anything runs if a source is not fed. */
    graph_each(node, p->from) {
        if (p->needed[node->id] && node_has(node, OP_SOURCE))
            return error_set(err, ERR_NOINPUT, "%s: not fed", node_text(node));
    }
    copy_nodes(p);
    prune_connect(p);
    for (int i = 0; i < request->n_fetches; i++)
        fetch_edges[i] = prune_edge(p, request->fetches[i]);
    if ((request->order && mark_order(plan, p, request->order, err)) || graph_infer(p->to, err))
        return err->code;
    return infer_stacks(p->to, err);
}

/* Has the device's passes rewrite the graph, but for runs that check each op's result, or run items
 * one by one. */
static void fuse(struct plan *plan, struct prune *p, struct edge *fetch_edges)
{
    struct fuse_options options = {.kernels = plan->options.kernels,
                                   .device = plan->options.device->type,
                                   .keep = fetch_edges,
                                   .n_keep = plan->n_fetches,
                                   .without = plan->options.without};
    struct fusion *fused = &plan->fused;
    if (plan->options.cut == CUT_ITEMS || plan->options.check_numerics)
        return;
    options.without |= (unsigned)plan->options.device->exact << DEVICE_PASS_SUMS;
    fuse_graph(plan->pruned, &options, fused, NULL);
    plan->graph = fused->graph ? fused->graph : plan->pruned;
    for (int i = 0; i < plan->n_fetches; i++)
        fetch_edges[i] = fusion_edge(fused, fetch_edges[i]);
    for (int i = 0; i < plan->n_feeds; i++)
        if (p->feed[i] >= 0)
            p->feed[i] = fused->node_of[p->feed[i]];
}

int plan_make_graph(struct plan *plan, const struct plan_request *request, struct edge *fetch_edges,
                    struct error *err)
{
    struct prune p;
    plan->n_feeds = request->n_feeds;
    size_t n = (size_t)plan->n_feeds;
    plan->feeds = arena_copy(&plan->memory, request->feeds, n * sizeof *plan->feeds);
    plan->feed_values = arena_array(&plan->memory, n + 1, sizeof *plan->feed_values);
    for (int i = 0; i < plan->n_feeds; i++) {
        const struct tensor *value = &request->feed_values[i];
        const struct node *node = graph_node(plan->source, plan->feeds[i].node);
        if (plan_check_fed(node, &node->outputs[plan->feeds[i].slot], value->type, &value->shape,
                           err))
            return err->code;
        plan->feed_values[i] = tensor_borrow(value->type, &value->shape, NULL);
    }
    prune_init(&p, plan->source, request, false);
    plan->graph = plan->pruned = p.to;
    if (!build(plan, &p, fetch_edges, err) && !plan_goes_on(plan, err))
        fuse(plan, &p, fetch_edges);
    for (int i = 0; i < plan->n_feeds; i++)
        if (p.feed[i] >= 0)
            edge_map_add(&plan->fed, (struct edge){p.feed[i], 0}, i);
    prune_release(&p);
    return err->code;
}
