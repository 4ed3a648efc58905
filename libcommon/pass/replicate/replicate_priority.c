/* SPDX-License-Identifier: Apache-2.0
 *
 * In which order a step uses variables: what belongs to the one that is used first is the most
 * urgent, whoever sends it (ByteScheduler, Peng et al. 2019; P3, Jayarajan et al. 2019). Gradients
 * become known in the opposite order, so that on a slow link those of the first layers overtake.
 */
#include "pass/replicate/replicate_private.h"

/* The origin of a node's value: `fed`, a batch, which comes from outside or is drawn; `variable`,
 * the one that it has, or hands on with nothing of a batch; -1: none. */
struct lineage {
    bool fed;
    int variable;
};

void replicate_find_priorities(struct replicator *r)
{
    size_t n = r->from->nodes.n;
    struct lineage *lineages = arena_array(&r->arena, n + 1, sizeof *lineages);
    int next = 0;
    r->priority = arena_array(&r->arena, n + 1, sizeof *r->priority);
    graph_each_ordered(node, r->from, r->order) {
        struct lineage *lineage = &lineages[node->id];
        struct lineage found = {.fed = has(r, node->id, FACT_OUTSIDE) || node_has(node, OP_RANDOM),
                                .variable = node_is(node, "Variable") ? node->id : -1};
        for (int k = 0; k < node->n_inputs; k++)
            found.fed |= lineages[node->inputs[k].node].fed;
        for (int k = 0; k < node->n_inputs && found.variable < 0 && !found.fed; k++)
            found.variable = lineages[node->inputs[k].node].variable;
        *lineage = found;
        for (int k = 0; lineage->fed && has(r, node->id, FACT_NEEDED) &&
                        !has(r, node->id, FACT_DOWN | FACT_MARKED) && k < node->n_inputs;
             k++) {
            int variable = lineages[node->inputs[k].node].variable;
            if (variable >= 0 && !r->priority[variable])
                r->priority[variable] = ++next;
        }
    }
    for (size_t i = 0; i < n; i++)
        if (lineages[i].variable >= 0)
            r->priority[i] = r->priority[lineages[i].variable];
}

int replicate_priority(const struct replicator *r, const char *variable)
{
    const struct node *node = graph_find(r->from, variable);
    return node ? r->priority[node->id] : 0;
}
