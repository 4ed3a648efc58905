/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_check: what must hold of a whole graph.
 */
#include <string.h>

#include "base/memory.h"
#include "graph/assemble.h"
#include "graph/device_name.h"
#include "graph/frames.h"
#include "graph/group.h"

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

static bool is_of(const struct graph *graph, struct edge edge, const char *op)
{
    return edge_exists(edge) && node_is(graph_node(graph, edge.node), op);
}

/* Returns whether a node runs only while its loop goes on, `gated` saying so of all nodes before
 * it: the loop's Switch is dead when the condition is false, and so is what comes of it. Values of
 * an inner loop or another device are taken to be so. */
static bool is_gated(const struct graph *graph, const struct node *node, const bool *gated)
{
    if (node_is(node, "Enter") ||
        (node_is(node, "Merge") && is_of(graph, node->inputs[1], "NextIteration")))
        return false;
    bool found = node_is(node, "Exit") || node_is(node, "Recv") ||
                 (node_is(node, "Switch") && is_of(graph, node->inputs[1], "LoopCond"));
    for (int i = 0; i < node->n_inputs && !found; i++)
        found = gated[node->inputs[i].node];
    for (int i = 0; i < node->n_controls && !found; i++)
        found = gated[node->controls[i]];
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
        error_set(err, ERR_DATA,
                  "starts as %s, and the loop makes it %s; what stays of the shape is said by a "
                  "PlaceholderWithDefault before the loop",
                  shape_text(&enter->outputs[node->inputs[0].slot].shape),
                  shape_text(&next->outputs[0].shape));
        return node_fail(node, err);
    }
    bool *gated = mem_array(graph->nodes.n + 1, sizeof *gated);
    for (size_t i = 0; i < graph->nodes.n && !err->code; i++) {
        const struct node *node = graph_node(graph, (int)i);
        gated[i] = is_gated(graph, node, gated);
        if (node_is(node, "NextIteration") && !gated[i]) {
            error_set(err, ERR_DATA,
                      "the loop would never end: what comes round does not depend on its Switch, "
                      "by data or by a control input");
            node_fail(node, err);
        }
    }
    mem_free(gated);
    return err->code;
}

int graph_check(const struct graph *graph, struct error *err)
{
    struct frames *frames;
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const struct node *node = graph_node(graph, (int)i);
        if (check_node(graph, node, err))
            return node_fail(node, err);
    }
    for (size_t i = 0; i < graph->entries.n; i++) {
        const struct entry *entry = &graph->entries.items[i];
        if (check_edges(graph, "entry", entry->name, entry->edges, entry->n_edges, err))
            return err->code;
    }
    for (size_t i = 0; i < graph->aliases.n; i++) {
        const struct alias *alias = &graph->aliases.items[i];
        if (check_edges(graph, "alias", alias->name, &alias->edge, 1, err))
            return err->code;
    }
    if (frames_new(graph, &frames, err))
        return err->code;
    frames_free(frames);
    return 0;
}
