/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding frames and conditions in one pass in topological order; back edges are checked at the
 * end.
 */
#include "graph/frames.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "graph/edge_map.h"

struct analysis {
    const struct graph *graph;
    struct frames *f;
    const struct edge_map *fed; /* or NULL */
    struct map names;           /* "PARENT/frame_name" -> frame */
    struct error *err;
};

bool frames_is_loop_switch(const struct graph *graph, const struct node *node)
{
    if (!node_is(node, "Switch"))
        return false;
    const struct node *predicate = graph_node(graph, node->inputs[1].node);
    while (node_is(predicate, "Identity"))
        predicate = graph_node(graph, predicate->inputs[0].node);
    return node_is(predicate, "LoopCond");
}

/* ---- frames ---- */

static const char *frame_text(const struct analysis *a, int frame)
{
    const struct graph_frame *f = &a->f->frames.items[frame];
    return frame == FRAME_ROOT ? "outside of loops"
                               : arena_printf(&a->f->arena, "in loop '%s'", f->name);
}

int frames_output(const struct frames *frames, const struct node *node)
{
    int frame = frames->frame[node->id];
    if (node_is(node, "Exit"))
        return frames->frames.items[frame].parent;
    if (node_is(node, "Enter"))
        return frames->variables.items[frames->variable[node->id]].frame;
    return frame;
}

static int check_same_frame(struct analysis *a, const struct node *node, int from, int *first)
{
    int frame = frames_output(a->f, graph_node(a->graph, from));
    if (*first < 0)
        *first = from;
    int expected = frames_output(a->f, graph_node(a->graph, *first));
    if (frame == expected)
        return 0;
    return node_refuse(node, a->err,
                       "inputs of one node must come from one loop, but '%s' is %s and '%s' is %s",
                       graph_node(a->graph, *first)->name, frame_text(a, expected),
                       graph_node(a->graph, from)->name, frame_text(a, frame));
}

/* ---- conditions ---- */

bool frames_implies(const struct frames *frames, int inner, int outer)
{
    int depth = outer < 0 ? 0 : frames->conditions.items[outer].depth;
    while (inner >= 0 && frames->conditions.items[inner].depth > depth)
        inner = frames->conditions.items[inner].parent;
    return inner == outer;
}

#define KEY_BYTES 64

static void condition_key(char key[KEY_BYTES], int parent, struct edge predicate, int branch)
{
    snprintf(key, KEY_BYTES, "%d %d:%d %d", parent, predicate.node, predicate.slot, branch);
}

static bool is_never(const struct frames *f, int condition)
{
    return condition >= 0 && f->conditions.items[condition].never;
}

/* Returns the condition `parent` and (predicate, branch). */
static int add_condition(struct frames *f, int parent, struct edge predicate, int branch)
{
    char key[KEY_BYTES];
    int64_t index;
    bool never = is_never(f, parent);
    for (int c = parent; c >= 0; c = f->conditions.items[c].parent) {
        const struct condition *known = &f->conditions.items[c];
        if (!edge_equal(known->predicate, predicate))
            continue;
        if (known->branch == branch)
            return parent;
        never = true;
    }
    condition_key(key, parent, predicate, branch);
    if (map_get(&f->condition_index, key, &index))
        return (int)index;
    map_put(&f->condition_index, arena_strdup(&f->arena, key), (int64_t)f->conditions.n);
    int depth = parent < 0 ? 1 : f->conditions.items[parent].depth + 1;
    struct condition made = {predicate, branch, parent, depth, never};
    vec_push(&f->conditions, made);
    return (int)f->conditions.n - 1;
}

/* Returns the condition under which both hold. */
static int and_conditions(struct frames *f, int a, int b)
{
    if (frames_implies(f, a, b))
        return a;
    if (frames_implies(f, b, a))
        return b;
    if (f->conditions.items[b].depth > f->conditions.items[a].depth)
        return and_conditions(f, b, a); /* adds few to many, instead of all anew */
    const struct condition last = f->conditions.items[b];
    return add_condition(f, and_conditions(f, a, last.parent), last.predicate, last.branch);
}

/* Finds the predicate of the Switch whose branch `edge` is; false: it is no condition's branch. */
static bool is_branch(const struct graph *graph, struct edge edge, struct edge *predicate)
{
    const struct node *node = graph_node(graph, edge.node);
    if (!node_is(node, "Switch") || edge.slot < 0 || frames_is_loop_switch(graph, node))
        return false;
    *predicate = node->inputs[1];
    while (node_is(node = graph_node(graph, predicate->node), "Identity"))
        *predicate = node->inputs[0];
    return true;
}

int frames_edge_condition(const struct frames *frames, const struct graph *graph, struct edge edge)
{
    int condition = frames->condition[edge.node];
    struct edge predicate;
    char key[KEY_BYTES];
    int64_t index;
    if (!is_branch(graph, edge, &predicate))
        return condition;
    condition_key(key, condition, predicate, edge.slot);
    if (map_get(&frames->condition_index, key, &index))
        return (int)index;
    return condition; /* this output is unused, or the condition is implied */
}

static int find_condition(struct analysis *a, const struct node *node)
{
    bool merge = node_is(node, "Merge");
    bool runs_dead = merge || node_is(node, "ControlTrigger"); /* runs whatever its controls are */
    int condition = CONDITION_NONE;
    bool any = false;
    for (int i = 0; i < node->n_inputs + (runs_dead ? 0 : node->n_controls); i++) {
        struct edge edge = node_dependency(node, i), predicate;
        if (graph_is_back_edge(a->graph, node, edge))
            continue;
        int c = a->f->condition[edge.node];
        if (is_branch(a->graph, edge, &predicate))
            c = add_condition(a->f, c, predicate, edge.slot);
        if (!merge)
            condition = and_conditions(a->f, condition, c);
        else if (!any || is_never(a->f, condition))
            condition = c;
        while (merge && !is_never(a->f, c) && !frames_implies(a->f, c, condition))
            condition = a->f->conditions.items[condition].parent; /* their common condition */
        any = true;
        if (condition >= 0 && a->f->conditions.items[condition].depth > FRAMES_DEPTH_MAX)
            return node_refuse(node, a->err, "conditions are nested too deep");
    }
    a->f->condition[node->id] = condition;
    return 0;
}

/* ---- loops ---- */

/* Returns the loop variable of the node's input that is a `from`; -1: none. */
static int continued(const struct analysis *a, const struct node *node, const char *from)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (node_is(graph_node(a->graph, node->inputs[i].node), from))
            return a->f->variable[node->inputs[i].node];
    return -1;
}

static int add_control_flow(struct analysis *a, const struct node *node)
{
    struct frames *f = a->f;
    int v;
    f->has_control_flow = true;
    if (node_is(node, "Enter")) {
        struct loop_variable variable = {
            .enter = node->id, .merge = -1, .next = -1, .switch_ = -1, .exit = -1};
        if (!*node_string(node, "frame_name"))
            return node_refuse(node, a->err, "frame_name is empty");
        /* Find the child that an Enter opens. */
        int parent = f->frame[node->id];
        const char *name = node_string(node, "frame_name");
        char *key = arena_printf(&f->arena, "%d/%s", parent, name);
        int64_t index;
        if (!map_get(&a->names, key, &index)) {
            index = (int64_t)f->frames.n;
            struct graph_frame frame = {.name = name,
                                        .parent = parent,
                                        .depth = f->frames.items[parent].depth + 1,
                                        .loop_cond = -1,
                                        .condition = CONDITION_NONE,
                                        .parallel_iterations =
                                            (int)node_int(node, "parallel_iterations")};
            vec_push(&f->frames, frame);
            map_put(&a->names, key, index);
        }
        variable.frame = (int)index;
        if (a->f->frames.items[variable.frame].depth > FRAMES_DEPTH_MAX)
            return node_refuse(node, a->err, "loops are nested too deep");
        struct graph_frame *entered = &f->frames.items[variable.frame];
        entered->n_enters++;
        if (f->condition[node->id] >= 0 && !node_bool(node, "is_constant"))
            entered->condition = f->condition[node->id];
        f->variable[node->id] = (int)f->variables.n;
        vec_push(&a->f->variables, variable);
        return 0;
    }
    if (node_is(node, "LoopCond")) {
        struct graph_frame *frame = &a->f->frames.items[a->f->frame[node->id]];
        if (frame->depth == 0)
            return node_refuse(node, a->err, "is not in a loop");
        if (frame->loop_cond < 0)
            frame->loop_cond = node->id;
        else if (!strcmp(graph_node(a->graph, frame->loop_cond)->assigned, node->assigned))
            return node_refuse(node, a->err,
                               "the loop has another LoopCond"); /* not from another partition */
        return 0;
    }
    if (node_is(node, "Merge")) {
        v = continued(a, node, "Enter");
        for (int i = 0; i < node->n_inputs && v >= 0; i++) {
            if (!graph_is_back_edge(a->graph, node, node->inputs[i]))
                continue;
            f->variables.items[v].merge = node->id;
            f->variables.items[v].next = node->inputs[i].node;
            f->variable[node->id] = f->variable[node->inputs[i].node] = v;
        }
    } else if (node_is(node, "Switch") && frames_is_loop_switch(a->graph, node)) {
        v = f->variable[node->id] = continued(a, node, "Merge");
        if (v >= 0)
            f->variables.items[v].switch_ = node->id;
    } else if (node_is(node, "Exit")) {
        if (f->frame[node->id] == FRAME_ROOT)
            return node_refuse(node, a->err, "is not in a loop");
        v = f->variable[node->id] = continued(a, node, "Switch");
        if (v >= 0)
            f->variables.items[v].exit = node->id;
    } else if (node_is(node, "NextIteration") && f->frame[node->id] == FRAME_ROOT) {
        return node_refuse(node, a->err, "is not in a loop");
    }
    return 0;
}

static int analyse(struct analysis *a)
{
    int *order = arena_array(&a->f->arena, a->graph->nodes.n, sizeof *order);
    if (graph_order(a->graph, order, a->err))
        return a->err->code;
    graph_each_ordered(node, a->graph, order) {
        int first = -1;
        for (int j = 0; j < node->n_inputs + node->n_controls; j++) {
            struct edge edge = node_dependency(node, j);
            const struct node *from = graph_node(a->graph, edge.node);
            /* The reference of a variable, or a fed value: it exists in every loop and every
             * iteration. */
            if (graph_is_back_edge(a->graph, node, edge) ||
                (edge.slot >= 0 && !from->n_inputs && from->outputs[edge.slot].is_ref) ||
                (edge.slot >= 0 && a->fed && edge_map_get(a->fed, edge) >= 0))
                continue;
            if (check_same_frame(a, node, edge.node, &first))
                return a->err->code;
        }
        a->f->frame[node->id] =
            first < 0 ? FRAME_ROOT : frames_output(a->f, graph_node(a->graph, first));
        if (find_condition(a, node))
            return a->err->code;
        if (node_has(node, OP_CONTROL_FLOW) && add_control_flow(a, node))
            return a->err->code;
    }
    if (!a->f->has_control_flow)
        return 0;
    graph_each(node, a->graph)
        for (int k = 0; k < node->n_inputs; k++)
            if (graph_is_back_edge(a->graph, node, node->inputs[k]) &&
                a->f->frame[node->inputs[k].node] != a->f->frame[node->id])
                return node_refuse(node, a->err, "closes a loop that it is not in");
    return 0;
}

/* Sorts the variables by frame; within one they keep the order in which they were found. */
static void sort_variables(struct frames *f, size_t n_nodes)
{
    size_t n = f->variables.n;
    struct loop_variable *found =
        arena_copy(&f->arena, f->variables.items, n * sizeof *f->variables.items);
    int *place = arena_array(&f->arena, n, sizeof *place);
    for (size_t i = 1; i < f->frames.n; i++)
        f->frames.items[i].first_variable =
            f->frames.items[i - 1].first_variable + f->frames.items[i - 1].n_enters;
    for (size_t i = 0; i < n; i++) {
        struct graph_frame *frame = &f->frames.items[found[i].frame];
        place[i] = frame->first_variable++;
        f->variables.items[place[i]] = found[i];
    }
    for (size_t i = 0; i < f->frames.n; i++)
        f->frames.items[i].first_variable -= f->frames.items[i].n_enters;
    for (size_t i = 0; i < n_nodes; i++)
        f->variable[i] = f->variable[i] < 0 ? -1 : place[f->variable[i]];
}

int frames_new_fed(const struct graph *graph, const struct edge_map *fed, struct frames **frames,
                   struct error *err)
{
    size_t n = graph->nodes.n;
    struct frames *f = mem_alloc(sizeof *f);
    struct analysis a = {.graph = graph, .f = f, .fed = fed, .err = err};
    f->frame = arena_array(&f->arena, n, sizeof *f->frame);
    f->condition = arena_array(&f->arena, n, sizeof *f->condition);
    f->variable = arena_array(&f->arena, n, sizeof *f->variable);
    memset(f->variable, -1, n * sizeof *f->variable);
    vec_push(&f->frames,
             ((struct graph_frame){.name = "", .parent = -1, .loop_cond = -1, .condition = -1}));
    int code = analyse(&a);
    map_release(&a.names);
    if (code) {
        frames_free(f);
    } else {
        sort_variables(f, n);
        f->parents = arena_array(&f->arena, f->frames.n, sizeof *f->parents);
        for (size_t i = 0; i < f->frames.n; i++)
            f->parents[i] = f->frames.items[i].parent;
        *frames = f;
    }
    return code;
}

void frames_free(struct frames *frames)
{
    if (!frames)
        return;
    vec_release(&frames->frames);
    vec_release(&frames->conditions);
    vec_release(&frames->variables);
    map_release(&frames->condition_index);
    arena_release(&frames->arena);
    mem_free(frames);
}
