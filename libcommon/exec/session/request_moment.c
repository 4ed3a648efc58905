/* SPDX-License-Identifier: Apache-2.0
 *
 * Of which variables a fetch is computed: those before the step, or those after it. By the order of
 * reads and writes (graph/access.h) a read sees the writes from which a path leads to it. What a
 * worker pushes to shards is written by them while its ClockPush waits, so that this op stands for
 * the write of all that they keep.
 */
#include "exec/session/request.h"
#include "graph/join.h"
#include "graph/worker_attr.h"

static bool takes_ref(const struct node *node, int k)
{
    const struct op_arg *arg = k < node->op->n_inputs ? &node->op->inputs[k] : NULL;
    return arg && arg->is_ref;
}

static bool writes(const struct node *node, int k)
{
    return takes_ref(node, k) && !node_has(node, OP_READS_REF);
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

/* A worker's copy of what the shards keep, or what it counts by. */
static bool is_own(const struct node *variable)
{
    return node_attr(variable, WORKER_LOCAL) != NULL;
}

/* A write of the variable in the step that does not come before the node. */
static bool is_written_later(const struct request *request, const bool *used, int variable,
                             const bool *before)
{
    const struct graph *graph = request->graph;
    bool is_shared = !is_own(graph_node(graph, variable));
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const struct node *node = graph_node(graph, (int)i);
        if (used[i] && !before[i] && is_shared && node_round(node) == ROUND_COMMIT)
            return true;
        for (int k = 0; used[i] && !before[i] && k < node->n_inputs; k++)
            if (writes(node, k) && variable_of(graph, node->inputs[k]) == variable)
                return true;
    }
    return false;
}

/* What the node itself looks at; *is_write: what it gives is the variable as it has written it,
 * whatever it was computed of. */
static void look(const struct request *request, const bool *used, const struct node *node,
                 struct request_view *view, bool *is_write)
{
    const bool *before = NULL;
    int id = node->id;
    struct arena memory = ARENA_INIT;
    *is_write = false;
    for (int k = 0; k < node->n_inputs; k++) {
        int variable = variable_of(request->graph, node->inputs[k]);
        *is_write |= writes(node, k);
        if (variable < 0)
            continue;
        view->of_own |= is_own(graph_node(request->graph, variable));
        if (view->before)
            continue;
        const struct request itself = {.graph = request->graph, .targets = {&id, 1, 1}};
        before =
            before ? before : request_mark_used(&itself, &memory); /* what the node depends on */
        view->before = is_written_later(request, used, variable, before);
    }
    arena_release(&memory);
}

/* By data: what a node only waits for makes no difference to its value. */
struct request_view request_view(const struct request *request, int fetch)
{
    const struct graph *graph = request->graph;
    struct arena memory = ARENA_INIT;
    const bool *used = request_mark_used(request, &memory);
    bool *seen = arena_array(&memory, graph->nodes.n + 1, sizeof *seen);
    struct node_list todo = {0};
    struct request_view view = {false, false};
    bool is_write;
    vec_push(&todo, request->fetches.items[fetch].node);
    while (todo.n && !(view.before && view.of_own)) {
        const struct node *node = graph_node(graph, vec_pop(&todo)), *send;
        if (seen[node->id])
            continue;
        seen[node->id] = true;
        look(request, used, node, &view, &is_write);
        for (int k = 0; k < node->n_inputs && !is_write; k++)
            if (!seen[node->inputs[k].node])
                vec_push(&todo, node->inputs[k].node);
        if ((send = join_send_of(graph, node)) && !seen[send->id])
            vec_push(&todo, send->id);
    }
    vec_release(&todo);
    arena_release(&memory);
    return view;
}
