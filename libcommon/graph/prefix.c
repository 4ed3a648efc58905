/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/prefix.h"

const char *graph_free_prefix(struct arena *arena, const struct graph *graph, const char *base)
{
    const char *prefix = base;
    bool is_taken = true;
    for (int i = 1; is_taken; i++) {
        is_taken = false;
        for (size_t k = 0; k < graph->nodes.n && !is_taken; k++)
            is_taken = str_starts(graph_node(graph, (int)k)->name, prefix);
        for (size_t k = 0; k < graph->aliases.n && !is_taken; k++)
            is_taken = str_starts(graph->aliases.items[k].name, prefix);
        if (is_taken)
            prefix = arena_printf(arena, "%s.%d", base, i);
    }
    return prefix;
}
