/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_check: what must hold of a whole graph.
 */
#include "base/memory.h"
#include "graph/assemble.h"
#include "graph/device_name.h"
#include "graph/frames.h"

static int check_node(const struct graph *graph, const struct node *node, struct error *err)
{
    struct device_name name;
    for (int i = 0; i < node->n_inputs; i++) {
        struct edge edge = node->inputs[i];
        if (!edge_exists(edge))
            return error_set(err, ERR_DATA, "input %d is open", i);
        if ((size_t)edge.node >= graph->nodes.n ||
            edge.slot >= graph_node(graph, edge.node)->n_outputs || edge.slot < 0)
            return error_set(err, ERR_DATA, "input %d names what does not exist", i);
        if (edge.node == node->id)
            return error_set(err, ERR_DATA, "is its own input");
    }
    /* "_class" lists groups as "loc:@NAME", NAME being a node. */
    const struct attr_value *groups = node_attr(node, "_class");
    if (groups && groups->kind != ATTR_LIST_STRING)
        return error_set(err, ERR_DATA, "_class must be list(string), not %s",
                         attr_kind_name(groups->kind));
    for (int i = 0; groups && i < groups->n; i++) {
        const char *leader = group_leader_name(groups->strings[i]);
        if (leader && !graph_find(graph, leader))
            return error_set(err, ERR_DATA, "is to be with '%s', which does not exist", leader);
    }
    if (*node->device && device_name_parse(&name, node->device, err))
        return err->code;
    if (*node->assigned && device_name_parse(&name, node->assigned, err))
        return err->code;
    if (*node->assigned && !device_name_is_full(&name))
        return error_set(err, ERR_DATA,
                         "assigned device '%s' lacks job, task, type or index of the device",
                         node->assigned);
    return 0;
}

static int check_edges(const struct graph *graph, const char *what, const char *name,
                       const struct edge *edges, int n, struct error *err)
{
    for (int i = 0; i < n; i++)
        if (!edge_exists(edges[i]) || (size_t)edges[i].node >= graph->nodes.n ||
            edges[i].slot >= graph_node(graph, edges[i].node)->n_outputs)
            return error_set(err, ERR_DATA, "%s '%s' names what does not exist", what, name);
    return 0;
}

/* ---- loops ----
 *
 * Rules that ensure that every value that a node of a loop waits for comes either in each iteration
 * or in none. Loops of scripts satisfy them; a text may contain anything. */

static bool is_of(const struct graph *graph, struct edge edge, const char *op)
{
    return edge_exists(edge) && node_is(graph_node(graph, edge.node), op);
}

/* Returns whether a node runs only while its loop continues; `gated` says so of all nodes before
 * it. When the condition is false the loop's Switch is dead, and so are its consumers. Values of an
 * inner loop or another device count as gated. */
static bool is_gated(const struct graph *graph, const struct node *node, const bool *gated)
{
    if (node_is(node, "Enter") ||
        (node_is(node, "Merge") && is_of(graph, node->inputs[1], "NextIteration")))
        return false;
    bool found = node_is(node, "Exit") || node_is(node, "Recv") ||
                 (node_is(node, "Switch") && is_of(graph, node->inputs[1], "LoopCond"));
    for (int i = 0; i < node->n_inputs + node->n_controls && !found; i++)
        found = gated[node_dependency(node, i).node];
    return found;
}

int graph_check_rounds(const struct graph *graph, struct error *err)
{
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const struct node *node = graph_node(graph, (int)i), *next, *enter;
        if (!node_is(node, "Merge") || node->n_inputs != 2 || !edge_exists(node->inputs[1]))
            continue;
        enter = graph_node(graph, node->inputs[0].node);
        next = graph_node(graph, node->inputs[1].node);
        if (!node_is(next, "NextIteration") ||
            shape_compatible(&enter->outputs[node->inputs[0].slot].shape, &next->outputs[0].shape))
            continue;
        return node_refuse(
            node, err,
            "starts as %s, and the loop makes it %s; what stays of the shape is said by a "
            "PlaceholderWithDefault before the loop",
            shape_text(&enter->outputs[node->inputs[0].slot].shape),
            shape_text(&next->outputs[0].shape));
    }
    bool *gated = mem_array(graph->nodes.n + 1, sizeof *gated);
    for (size_t i = 0; i < graph->nodes.n && !err->code; i++) {
        const struct node *node = graph_node(graph, (int)i);
        gated[i] = is_gated(graph, node, gated);
        if (node_is(node, "NextIteration") && !gated[i])
            node_refuse(node, err,
                        "the loop would never end: what comes round does not depend on its "
                        "Switch, by data or by a control input");
    }
    mem_free(gated);
    return err->code;
}

/* Refuses inputs that a node may not wait for. A non-constant Enter has a value only in the first
 * iteration, a NextIteration in all but the first: only the Merge of the loop may take them. */
static int check_waits(const struct graph *graph, const struct node *node, struct error *err)
{
    bool merge = node_is(node, "Merge") && node->n_inputs == 2 &&
                 is_of(graph, node->inputs[0], "Enter") &&
                 is_of(graph, node->inputs[1], "NextIteration");
    for (int i = 0; i < node->n_inputs + node->n_controls; i++) {
        const struct node *from = graph_node(graph, node_dependency(node, i).node);
        bool merges = merge && i < node->n_inputs;
        if (node_is(from, "NextIteration") && !merges)
            return error_set(err, ERR_DATA,
                             "takes '%s', which only Merge(Enter, NextIteration) may", from->name);
        if (node_is(from, "Enter") && merges == node_bool(from, "is_constant"))
            return error_set(err, ERR_DATA,
                             "takes '%s', which must be an Enter of is_constant=%s here",
                             from->name, merges ? "false" : "true");
    }
    return 0;
}

/* Refuses a loop condition that some iterations skip, and an Exit not of the loop's end. */
static int check_steering(const struct graph *graph, const struct frames *frames,
                          const struct node *node, struct error *err)
{
    const struct graph_frame *frame = &frames->frames.items[frames->frame[node->id]];
    if (node_is(node, "Exit") &&
        (node->inputs[0].slot != 0 ||
         !frames_is_loop_switch(graph, graph_node(graph, node->inputs[0].node))))
        return error_set(err, ERR_DATA, "must take output 0 of a Switch of its loop's LoopCond");
    if (!node_is(node, "NextIteration") && !node_is(node, "LoopCond"))
        return 0;
    bool runs = false; /* it runs whenever some variable has entered */
    for (int i = frame->first_variable; !runs && i < frame->first_variable + frame->n_enters; i++)
        runs = frames_implies(frames, frames->condition[frames->variables.items[i].enter],
                              frames->condition[node->id]);
    if (!runs)
        return error_set(err, ERR_DATA,
                         "has no value in rounds that do not take a branch which it depends on");
    return 0;
}

/* Refuses a loop whose start depends on its own result. The level of a node is how many loops must
 * end one after the other before it runs, at most the number of loops: a level that exceeds it lies
 * on a cycle, which the frames do not show as edges. As nodes are almost in order, two or three
 * passes suffice. */
static int check_levels(const struct graph *graph, const struct frames *frames, struct error *err)
{
    int *level = mem_array(graph->nodes.n, sizeof *level);
    int *entered = mem_array(frames->frames.n, sizeof *entered); /* by frame: of Enters */
    for (bool changed = true; changed && !err->code;) {
        changed = false;
        for (size_t i = 0; i < graph->nodes.n && !err->code; i++) {
            const struct node *node = graph_node(graph, (int)i);
            int most = node_is(node, "Exit") ? entered[frames->frame[i]] + 1 : 0;
            for (int k = 0; k < node->n_inputs + node->n_controls; k++) {
                struct edge edge = node_dependency(node, k);
                if (!graph_is_back_edge(graph, node, edge) && level[edge.node] > most)
                    most = level[edge.node];
            }
            changed |= most > level[i];
            level[i] = most;
            if (node_is(node, "Enter") && most > entered[frames_output(frames, node)])
                entered[frames_output(frames, node)] = most;
            if (most > (int)frames->frames.n)
                node_refuse(node, err, "depends on the Exit of a loop that depends on it");
        }
    }
    mem_free(level);
    mem_free(entered);
    return err->code;
}

/* ERR_DATA naming the node for a loop in which a node waits for a value that not every iteration
 * has, whose condition depends on an inner branch, or whose start depends on its own result. */
static int check_loops(const struct graph *graph, const struct frames *frames, struct error *err)
{
    bool is_part = false; /* a partition does not show branches that a Recv's value depends on */
    error_clear(err);
    for (size_t i = 0; i < graph->nodes.n; i++)
        is_part |= node_is(graph_node(graph, (int)i), "Recv");
    graph_each(node, graph)
        if (check_waits(graph, node, err) || (!is_part && check_steering(graph, frames, node, err)))
            return node_fail(node, err);
    return check_levels(graph, frames, err);
}

int graph_check(const struct graph *graph, struct error *err)
{
    struct frames *frames;
    graph_each(node, graph)
        if (check_node(graph, node, err))
            return node_fail(node, err);
    vec_each(entry, &graph->entries)
        if (check_edges(graph, "entry", entry->name, entry->edges, entry->n_edges, err))
            return err->code;
    vec_each(alias, &graph->aliases)
        if (check_edges(graph, "alias", alias->name, &alias->edge, 1, err))
            return err->code;
    if (frames_new(graph, &frames, err))
        return err->code;
    int code = frames->has_control_flow ? check_loops(graph, frames, err) : 0;
    frames_free(frames);
    return code;
}
