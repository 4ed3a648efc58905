/* SPDX-License-Identifier: Apache-2.0
 *
 * A Recv that is to be late is told by the attribute `_after` what it waits for: a node of its
 * part. The plan does not follow it where it closes a cycle.
 */
#include "pass/part/part_private.h"

int part_tell_waits(struct cutter *c)
{
    for (size_t i = 0; i < c->parts->crossings.n; i++) {
        const struct part_crossing *crossing = &c->parts->crossings.items[i];
        if (crossing->wait < 0)
            continue;
        const char **name = arena_alloc(&c->arena, sizeof *name);
        *name = graph_node(c->from, crossing->wait)->name;
        struct attr attr = {"_after", {.kind = ATTR_LIST_STRING, .n = 1, .strings = name}};
        struct graph *graph = part_at(c, crossing->to);
        if (graph_set_attr(graph, graph_node(graph, crossing->recv), &attr, c->err))
            return c->err->code;
    }
    return 0;
}
