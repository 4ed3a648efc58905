/* SPDX-License-Identifier: Apache-2.0
 *
 * How what all workers bring of an edge becomes one value, and what the readers of the edge get.
 */
#include <string.h>

#include "graph/worker_attr.h"
#include "pass/replicate/replicate_private.h"

const char *replicate_reduction(const struct node *node, enum dtype type)
{
    const char *role = replicate_role(node);
    if (!strcmp(role, ROLE_INDICES))
        return "rows";
    if (!strcmp(role, ROLE_VALUES))
        return "mean_rows";
    return dtype_is_floating(type) ? "mean" : "first";
}

static int next_reduced(const struct replicator *r, int i)
{
    return r->reduced.items[i].next ? r->reduced.items[i].next : -1;
}

struct edge replicate_find_reduced(const struct replicator *r, struct edge edge,
                                   enum reduced_for use, const char *reduction)
{
    int i = edge_exists(edge) ? replicate_at(r, BY_REDUCED, edge) : -1;
    for (; i >= 0; i = next_reduced(r, i)) {
        const struct reduced *reduced = &r->reduced.items[i];
        if (reduced->use == use && !strcmp(reduced->reduction, reduction))
            return reduced->value;
    }
    return EDGE_NONE;
}

/* The first of an edge for one use and reduction stays. */
void replicate_note_reduced(struct replicator *r, struct reduced reduced)
{
    int at = (int)r->reduced.n, last = -1;
    vec_push(&r->reduced, reduced);
    if (!edge_exists(reduced.edge) ||
        edge_exists(replicate_find_reduced(r, reduced.edge, reduced.use, reduced.reduction)))
        return;
    for (int i = replicate_at(r, BY_REDUCED, reduced.edge); i >= 0; i = next_reduced(r, i))
        last = i;
    if (last >= 0)
        r->reduced.items[last].next = at;
    else
        edge_map_add(&r->by_edge[BY_REDUCED], reduced.edge, at);
}

/* Also what takes a worker's part of an initial value. */
bool replicate_is_initializer(const struct replicator *r, const struct node *node)
{
    return node_attr(node, WORKER_PART_INITIAL) || has(r, node->id, FACT_FIRST);
}

/* What an update, or the initializer of a variable, gets of an edge: what came of all workers'. */
struct edge replicate_reduced(struct replicator *r, const struct node *reader, struct edge edge)
{
    enum reduced_for use = replicate_is_initializer(r, reader) ? FOR_INITIAL : FOR_UPDATES;
    bool wants = use == FOR_INITIAL || has(r, reader->id, FACT_UPDATE);
    int i = wants && edge_exists(edge) ? replicate_at(r, BY_REDUCED, edge) : -1;
    for (; i >= 0; i = next_reduced(r, i))
        if (r->reduced.items[i].use == use)
            return r->reduced.items[i].value;
    return (struct edge){edge_exists(edge) ? r->copy[edge.node] : -1, edge.slot};
}
