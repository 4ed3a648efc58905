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
