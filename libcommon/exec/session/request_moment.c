/* SPDX-License-Identifier: Apache-2.0
 *
 * Of which variables a fetch is computed: those before the step, or those after it. By the order of
 * reads and writes (graph/access.h) a read sees the writes from which a path leads to it.
 */
#include "base/memory.h"
#include "exec/session/request.h"
#include "graph/join.h"

static bool takes_ref(const struct node *node, int k)
{
    const struct op_arg *arg = k < node->op->n_inputs ? &node->op->inputs[k] : NULL;
    return arg && arg->is_ref;
}

/* The variable that an edge is, or is a reference to; -1: it is neither. */
static int variable_of(const struct graph *graph, struct edge edge)
{
    while (edge.slot >= 0) {
        const struct node *node = graph_node(graph, edge.node);
        int k = 0;
        if (node_is(node, "Variable"))
            return node->id;
        while (k < node->n_inputs && !takes_ref(node, k))
            k++;
        if (k == node->n_inputs || !node->outputs[edge.slot].is_ref)
            return -1;
        edge = node->inputs[k];
    }
    return -1;
}

/* Marks what a node depends on, itself too; the caller frees it. */
static char *above(const struct graph *graph, int node)
{
    const struct request request = {.graph = graph, .targets = {&node, 1, 1}};
    return request_mark_used(&request);
}

/* A write of the variable in the step that does not come before the node. */
static bool is_written_later(const struct request *request, const char *used, int variable,
                             const char *before)
{
    const struct graph *graph = request->graph;
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const struct node *node = graph_node(graph, (int)i);
        for (int k = 0; used[i] && !before[i] && k < node->n_inputs; k++)
            if (takes_ref(node, k) && !node_has(node, OP_READS_REF) &&
                variable_of(graph, node->inputs[k]) == variable)
                return true;
    }
    return false;
}

static bool sees_before(const struct request *request, const char *used, const struct node *node)
{
    const struct graph *graph = request->graph;
    bool sees = false;
    char *before = NULL;
    for (int k = 0; k < node->n_inputs && !sees; k++) {
        int variable = variable_of(graph, node->inputs[k]);
        if (variable < 0 || (takes_ref(node, k) && !node_has(node, OP_READS_REF)))
            continue;
        before = before ? before : above(graph, node->id);
        sees = is_written_later(request, used, variable, before);
    }
    mem_free(before);
    return sees;
}

bool request_sees_before(const struct request *request, int fetch)
{
    const struct graph *graph = request->graph;
    const struct edge edge = request->fetches.items[fetch];
    int variable = variable_of(graph, edge);
    char *used = request_mark_used(request), *needs = above(graph, edge.node);
    bool sees = variable >= 0 && is_written_later(request, used, variable, needs);
    for (size_t i = 0; i < graph->nodes.n && !sees; i++)
        if (needs[i])
            sees = sees_before(request, used, graph_node(graph, (int)i));
    mem_free(used);
    mem_free(needs);
    return sees;
}
