/* SPDX-License-Identifier: Apache-2.0
 *
 * What users call things: entries, aliases and provenance, in the parts that have the nodes.
 */
#include "graph/join.h"
#include "pass/part/part_private.h"

int part_copy_names(struct cutter *c)
{
    const struct graph *from = c->from;
    vec_each(entry, &from->entries) {
        /* Where the fetches of an entry are on several parts. */
        int first = -1;
        bool spread = false;
        for (int k = 0; k < entry->n_edges; k++) {
            if (entry->edges[k].slot == CONTROL_SLOT)
                continue;
            first = first < 0 ? c->part[entry->edges[k].node] : first;
            spread |= c->part[entry->edges[k].node] != first;
        }
        for (int k = 0; spread && k < entry->n_edges; k++) {
            if (entry->edges[k].slot == CONTROL_SLOT)
                continue;
            /* Tells a node that it is fetched by an entry, and where in its order: the parts are
             * joined to the same. */
            struct edge edge = entry->edges[k];
            struct graph *graph = part_at(c, c->part[edge.node]);
            struct node *node = graph_node(graph, c->copy[edge.node]);
            const struct attr_value *known = node_attr(node, JOIN_ORDER);
            int n = known ? known->n : 0;
            const char **notes = arena_array(&c->arena, (size_t)n + 1, sizeof *notes);
            for (int j = 0; j < n; j++)
                notes[j] = known->strings[j];
            notes[n] = arena_printf(&c->arena, "%s:%d:%d", entry->name, edge.slot, k);
            struct attr_value value = {.kind = ATTR_LIST_STRING, .n = n + 1, .strings = notes};
            if (graph_set_attr(graph, node, &(struct attr){JOIN_ORDER, value}, c->err))
                return c->err->code;
        }

        struct edge *edges = arena_array(&c->arena, (size_t)entry->n_edges + 1, sizeof *edges);
        for (int part = 0; part < c->n; part++) {
            int n = 0;
            for (int k = 0; k < entry->n_edges; k++)
                if (c->part[entry->edges[k].node] == part)
                    edges[n++] = (struct edge){c->copy[entry->edges[k].node], entry->edges[k].slot};
            if (n)
                graph_add_entry(part_at(c, part), entry->name, edges, n);
        }
    }
    vec_each(alias, &from->aliases) {
        struct edge edge = {c->copy[alias->edge.node], alias->edge.slot};
        if (graph_add_alias(part_at(c, c->part[alias->edge.node]), alias->name, edge, c->err))
            return c->err->code;
    }
    for (int part = 0; part < c->n; part++)
        graph_add_history(part_at(c, part), from);
    return 0;
}
