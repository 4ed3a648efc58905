/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/group.h"

#include <string.h>

#include "base/str.h"

#define PREFIX "loc:@"

const char *group_leader_name(const char *group)
{
    return str_starts(group, PREFIX) ? group + strlen(PREFIX) : NULL;
}

const struct node *group_leader(const struct graph *graph, const char *group)
{
    const char *name = group_leader_name(group);
    return name ? graph_find(graph, name) : NULL;
}

const struct node *group_first_leader(const struct graph *graph, const struct node *node)
{
    const struct attr_value *groups = node_attr(node, "_class");
    bool listed = groups && groups->kind == ATTR_LIST_STRING && groups->n;
    return listed ? group_leader(graph, groups->strings[0]) : NULL;
}

struct attr group_attr(struct arena *arena, const char *leader)
{
    const char *group = arena_printf(arena, PREFIX "%s", leader);
    struct attr_value groups = {
        .kind = ATTR_LIST_STRING, .n = 1, .strings = arena_copy(arena, &group, sizeof group)};
    return (struct attr){"_class", groups};
}
