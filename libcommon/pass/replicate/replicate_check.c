/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a graph cannot be replicated.
 */
#include <string.h>

#include "pass/replicate/replicate_private.h"

static int refuse(struct replicator *r, const struct node *node, const char *why)
{
    error_set(r->err, ERR_DATA, "%s", why);
    return node_fail(node, r->err);
}

int replicate_check_late(struct replicator *r, const char *what)
{
    for (size_t i = 0; i < r->pushes.n; i++)
        for (size_t k = 0; k < r->pushes.items[i].edges.n; k++) {
            const struct node *node = graph_node(r->from, r->pushes.items[i].edges.items[k].node);
            if (!has(r, node->id, FACT_AFTER))
                continue;
            error_set(r->err, ERR_DATA, "an update needs it, but it comes after %s", what);
            return node_fail(node, r->err);
        }
    return 0;
}

int replicate_check_pushes(struct replicator *r)
{
    if (!r->pushes.n)
        return error_set(r->err, ERR_DATA, "the entry '%s' changes no variable by a gradient",
                         r->entry->name);
    return replicate_check_late(r, "an update");
}

int replicate_check_nodes(struct replicator *r)
{
    graph_each(node, r->from) {
        if (node_is(node, "Send") || node_is(node, "Recv"))
            return refuse(r, node, "the graph was cut before; it is replicated first");
        bool routes = node_round(node) == ROUND_ROUTE ||
                      (node_round(node) == ROUND_REDUCE &&
                       strncmp(node->name, ALLREDUCE_SCOPE, strlen(ALLREDUCE_SCOPE)) != 0);
        if (routes && r->options->mode != REPLICATE_ALLREDUCE)
            return refuse(r, node, "only with --mode allreduce do all workers run it in one step");
        if (node_round(node) && !routes)
            return refuse(r, node, "the graph was replicated before");
        if (node_attr(node, "_gradient"))
            r->facts[node->id] |= FACT_MARKED;
    }
    return 0;
}

bool replicate_may_leave_out(const struct replicator *r)
{
    for (size_t i = 0; i < r->from->nodes.n; i++)
        if (has(r, (int)i, FACT_UPDATE) && node_has(graph_node(r->from, (int)i), OP_CONTROL_FLOW))
            return true;
    return false;
}
