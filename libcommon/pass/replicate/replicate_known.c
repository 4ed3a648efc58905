/* SPDX-License-Identifier: Apache-2.0
 *
 * In which order a step comes to know what is pushed: by the time of what each depends on, as if
 * nothing waited for a processor. The order of nodes in the graph says less: with the gradient of
 * the first layer, which needs all of back-propagation, those of others may come after it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pass/replicate/replicate_private.h"

/* ---- priorities ----
 *
 * In which order a step uses variables: what belongs to the one that is used first is the most
 * urgent, whoever sends it (ByteScheduler, Peng et al. 2019; P3, Jayarajan et al. 2019). Gradients
 * become known in the opposite order, so that on a slow link those of the first layers overtake. */

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

/* ---- what becomes known when ---- */

static int by_time(const void *a, const void *b)
{
    const struct known_value *x = a, *y = b;
    return x->ns != y->ns ? (x->ns > y->ns) - (x->ns < y->ns) : x->place - y->place;
}

int replicate_list_known(struct replicator *r, struct known_value **list)
{
    /* By node: when its values are there at the earliest. */
    size_t n_nodes = r->from->nodes.n;
    double *times = arena_array(&r->arena, n_nodes + 1, sizeof *times);
    graph_each_ordered(node, r->from, r->order) {
        double begin = 0;
        for (int k = 0; k < node->n_inputs + node->n_controls; k++)
            begin = fmax(begin, times[node_dependency(node, k).node]);
        times[node->id] = begin + replicate_node_ns(r, node);
    }

    VEC(struct known_value) known = VEC_INIT;
    graph_each_ordered(node, r->from, r->order) {
        for (int slot = 0; slot < node->n_outputs; slot++) {
            struct edge edge = {node->id, slot};
            if (replicate_is_pushed(r, edge))
                vec_push_in(&r->arena, &known,
                            ((struct known_value){edge, times[node->id], (int)known.n}));
        }
    }
    int n = (int)known.n;
    *list = known.items;
    /* The numbers of rows are of no use, and no more urgent, before the rows are known. */
    for (int i = 0; i < n; i++) {
        const char *variable = replicate_gradient_of(graph_node(r->from, (*list)[i].edge.node));
        if (!variable || !*replicate_role(graph_node(r->from, (*list)[i].edge.node)))
            continue;
        for (int k = 0; k < n; k++) {
            const char *other = replicate_gradient_of(graph_node(r->from, (*list)[k].edge.node));
            if (other && !strcmp(variable, other))
                (*list)[i].ns = fmax((*list)[i].ns, (*list)[k].ns);
        }
    }
    if (n)
        qsort(*list, (size_t)n, sizeof **list, by_time);
    return n;
}
