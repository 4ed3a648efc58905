/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known of a value before anything runs: whole constants, and integer vectors of which some
 * elements are known (the shape of a batch is [?,28,28,1]; so is a Reshape's argument that is
 * computed from it).
 */
#include "graph/infer.h"

/* Nodes visited for one value, with repeats: v + v of v + v of ... has 2^n paths. Also the limit of
 * nodes in a chain that only pass the value on. */
#define VISITS_MAX 1000
#define INPUTS_MAX 16 /* of a node whose value is known: a vector as short as a shape */

struct constant_search {
    const struct graph *graph;
    int *visits;
};

static bool known_vector(const struct constant_search *search, struct edge edge, struct shape *out);

static const struct node *passed_through(const struct graph *graph, struct edge *edge)
{
    const struct node *node = graph_node(graph, edge->node);
    for (int i = 0; i < VISITS_MAX && node_has(node, OP_PASSES) && edge_exists(node->inputs[0]);
         i++) {
        *edge = node->inputs[0];
        node = graph_node(graph, edge->node);
    }
    return node;
}

const struct tensor *graph_constant(const struct graph *graph, struct edge edge)
{
    const struct node *node = passed_through(graph, &edge);
    const struct attr_value *value = node_is(node, "Const") ? node_attr(node, "value") : NULL;
    return value ? value->tensor : NULL;
}

/* ---- values that ops infer ---- */

static const struct tensor *constant_input(const struct infer *infer, int input)
{
    const struct constant_search *search = infer->context;
    return graph_constant(search->graph, infer->node->inputs[input]);
}

static bool vector_input(const struct infer *infer, int input, struct shape *shape)
{
    return known_vector(infer->context, infer->node->inputs[input], shape);
}

/* Returns whether the search continues through the node, all of whose inputs exist. */
static bool follows(const struct constant_search *search, const struct node *node,
                    struct shape *out)
{
    const struct node_output *in[INPUTS_MAX];
    if (!node->op->def->value || node->n_inputs > INPUTS_MAX)
        return false;
    for (int i = 0; i < node->n_inputs; i++)
        in[i] = graph_output(search->graph, node->inputs[i]);
    const struct infer infer = {.node = node,
                                .in = in,
                                .n_in = node->n_inputs,
                                .value = constant_input,
                                .value_shape = vector_input,
                                .context = search};
    if (!node->op->def->value(&infer, out))
        return false;
    for (int i = 0; i < out->rank && node->outputs[0].type == INT32; i++)
        if (out->dims[i] > INT32_MAX)
            out->dims[i] = SHAPE_UNKNOWN; /* the cast wraps or loses bits */
    return true;
}

static bool known_vector(const struct constant_search *search, struct edge edge, struct shape *out)
{
    const struct graph *graph = search->graph;
    if (++*search->visits > VISITS_MAX || !edge_exists(edge))
        return false;
    enum dtype type = graph_output(graph, edge)->type;
    if (type != INT32 && type != INT64)
        return false;
    const struct node *node = passed_through(graph, &edge);
    const struct shape *own = &node->outputs[edge.slot].shape;
    if (own->rank > 1)
        return false;
    if (node_is(node, "Const"))
        return infer_shape_of_value(node_attr(node, "value")->tensor, out);
    for (int i = 0; i < node->n_inputs; i++)
        if (!edge_exists(node->inputs[i]))
            return false;
    if (edge.slot == 0 && follows(search, node, out))
        return true;
    if (own->rank < 0 || (own->rank == 1 && (own->dims[0] < 0 || own->dims[0] > SHAPE_RANK_MAX)))
        return false;
    *out = shape_unknown(own->rank == 0 ? 1 : (int)own->dims[0]); /* at least the length is known */
    return true;
}

bool graph_constant_shape(const struct graph *graph, struct edge edge, struct shape *shape)
{
    int visits = 0;
    const struct constant_search search = {.graph = graph, .visits = &visits};
    return known_vector(&search, edge, shape);
}

bool graph_constant_axes(const struct graph *graph, struct edge edge, int rank, unsigned *axes)
{
    const struct tensor *list = graph_constant(graph, edge);
    *axes = 0;
    for (int64_t i = 0; list && i < tensor_count(list); i++) {
        int axis;
        if (!shape_axis(tensor_get_int64(list, i), rank, &axis))
            return false;
        *axes |= 1U << axis;
    }
    return list;
}
