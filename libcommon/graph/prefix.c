/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/prefix.h"

static bool is_taken(const struct graph *graph, const char *prefix)
{
    for (size_t i = 0; i < graph->nodes.n; i++)
        if (str_starts(graph_node(graph, (int)i)->name, prefix))
            return true;
    for (size_t i = 0; i < graph->aliases.n; i++)
        if (str_starts(graph->aliases.items[i].name, prefix))
            return true;
    return false;
}

const char *graph_free_prefix(struct arena *arena, const struct graph *graph, const char *base)
{
    const char *prefix = base;
    for (int i = 1; is_taken(graph, prefix); i++)
        prefix = arena_printf(arena, "%s.%d", base, i);
    return prefix;
}
