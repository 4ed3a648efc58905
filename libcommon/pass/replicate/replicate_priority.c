/* SPDX-License-Identifier: Apache-2.0
 *
 * In which order a step uses variables: what belongs to the one that is used first is the most
 * urgent, whoever sends it (ByteScheduler, Peng et al. 2019; P3, Jayarajan et al. 2019). Gradients
 * become known in the opposite order, so that on a slow link those of the first layers overtake.
 */
#include "pass/replicate/replicate_private.h"

/* The variable that a node has, or hands on without anything that a worker is fed; -1: none. */
static int variable_of(const struct replicator *r, const int *handed, const struct node *node)
{
    if (node_is(node, "Variable"))
        return node->id;
    int found = -1;
    for (int k = 0; k < node->n_inputs && found < 0 && !has(r, node->id, FACT_OUTSIDE); k++)
        found = handed[node->inputs[k].node];
    return found;
}

static bool is_forward(const struct replicator *r, int node)
{
    return has(r, node, FACT_NEEDED) && has(r, node, FACT_OUTSIDE) &&
           !has(r, node, FACT_DOWN | FACT_MARKED);
}

void replicate_find_priorities(struct replicator *r)
{
    size_t n = r->from->nodes.n;
    int *handed = arena_array(&r->arena, n + 1, sizeof *handed), next = 0;
    r->priority = arena_array(&r->arena, n + 1, sizeof *r->priority);
    for (size_t i = 0; i < n; i++) {
        const struct node *node = graph_node(r->from, r->order[i]);
        handed[node->id] = variable_of(r, handed, node);
        for (int k = 0; is_forward(r, node->id) && k < node->n_inputs; k++) {
            int variable = handed[node->inputs[k].node];
            if (variable >= 0 && !r->priority[variable])
                r->priority[variable] = ++next;
        }
    }
    for (size_t i = 0; i < n; i++)
        if (handed[i] >= 0)
            r->priority[i] = r->priority[handed[i]];
}

int replicate_priority(const struct replicator *r, const char *variable)
{
    const struct node *node = graph_find(r->from, variable);
    return node ? r->priority[node->id] : 0;
}

int replicate_hurry(struct replicator *r, int id, int priority)
{
    struct attr attr = {"_priority", attr_int(priority)};
    return priority ? graph_set_attr(r->to, graph_node(r->to, id), &attr, r->err) : 0;
}
