/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known of the elements of a step's stacks: where all that are pushed have one shape, so
 * has what is popped. A script's graph says less than a plan that knows what it is fed.
 */
#include "base/memory.h"
#include "exec/plan/plan_steps.h"

#define ROUNDS_MAX 4 /* what is popped may decide on the shape of what is pushed elsewhere */

struct stacks {
    struct graph *graph;
    int *stack;           /* by node with a handle as its first input: who made it; -1 */
    struct shape *pushed; /* by node that makes one: what all have in common */
    bool *is_known;       /* there is one */
    bool any_lost;        /* something is pushed, and nobody knows where */
};

/* Finds the maker of a handle through Enter, Switch and others that pass it on; -1: a Merge may be
 * either of two, and a popped value any that was pushed. */
static int maker_of(const struct graph *graph, struct edge handle)
{
    const struct node *node = graph_node(graph, handle.node);
    while (!node_has(node, OP_STATEFUL) && (node->n_inputs == 1 || node_is(node, "Switch")))
        node = graph_node(graph, node->inputs[0].node);
    return node_makes_resource(node) ? node->id : -1;
}

/* Finds the maker of the stack that each node has a handle of, and the values pushed there. */
static void find(struct stacks *s)
{
    for (size_t i = 0; i < s->graph->nodes.n; i++) {
        const struct node *node = graph_node(s->graph, (int)i);
        struct edge handle = node->n_inputs ? node->inputs[0] : (struct edge){0};
        bool any = node->n_inputs && node_has(node, OP_STATEFUL) &&
                   graph_node(s->graph, handle.node)->outputs[handle.slot].type == RESOURCE;
        int maker = s->stack[i] = any ? maker_of(s->graph, handle) : -1;
        s->any_lost |= any && maker < 0 && node->n_inputs == 2;
        if (maker < 0 || node->n_inputs != 2)
            continue;
        struct edge edge = node->inputs[1];
        const struct shape *shape = &graph_node(s->graph, edge.node)->outputs[edge.slot].shape;
        struct shape *pushed = &s->pushed[maker];
        if (!s->is_known[maker])
            *pushed = *shape;
        else if (!shape_equal(pushed, shape))
            *pushed = SHAPE_ANY;
        s->is_known[maker] = true;
    }
}

static int set_shapes(struct stacks *s, bool *any, struct error *err)
{
    *any = false;
    for (size_t i = 0; i < s->graph->nodes.n; i++) {
        struct node *node = graph_node(s->graph, (int)i);
        int maker = s->stack[i];
        bool is_known =
            !s->any_lost && maker >= 0 && s->is_known[maker] && shape_is_known(&s->pushed[maker]);
        if (!is_known || node->n_inputs != 1 || !node_attr(node, "shape") ||
            shape_is_known(&node->outputs[0].shape))
            continue;
        struct attr shape = {"shape", attr_shape(&s->pushed[maker])};
        *any = true;
        if (graph_set_attr(s->graph, node, &shape, err))
            return err->code;
    }
    return *any ? graph_infer(s->graph, err) : 0;
}

int plan_infer_stacks(struct graph *graph, struct error *err)
{
    size_t n = graph->nodes.n + 1;
    bool any = false;
    int code = 0;
    for (size_t i = 0; i < graph->nodes.n && !any; i++)
        any = node_makes_resource(graph_node(graph, (int)i));
    for (int round = 0; any && round < ROUNDS_MAX && !code; round++) {
        struct stacks s = {.graph = graph,
                           .stack = mem_array(n, sizeof *s.stack),
                           .pushed = mem_array(n, sizeof *s.pushed),
                           .is_known = mem_array(n, sizeof *s.is_known)};
        find(&s);
        code = set_shapes(&s, &any, err);
        mem_free(s.stack);
        mem_free(s.pushed);
        mem_free(s.is_known);
    }
    return code;
}
