/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_check: what must hold of a whole graph.
 */

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
    int code = frames->has_control_flow ? graph_check_loops(graph, frames, err) : 0;
    frames_free(frames);
    return code;
}
