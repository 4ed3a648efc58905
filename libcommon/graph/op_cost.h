/* SPDX-License-Identifier: Apache-2.0
 *
 * What an op declares of its cost: operations, and bytes that its kernel moves, from the shapes of
 * a node's inputs and outputs. How long that takes on some device is the placer's to say
 * (pass/place/cost.h).
 */
#ifndef TF_GRAPH_OP_COST_H
#define TF_GRAPH_OP_COST_H

#include "graph/graph.h"

struct op_cost {
    bool is_free; /* it is not run at all */
    double operations;
    double bytes; /* read and written; none: results are memory of inputs, or a few numbers */
};

struct cost_query {
    const struct node *node;
    const struct graph *graph;
    int64_t assume; /* what an unknown dimension counts as */
};

static inline const struct node_output *cost_input(const struct cost_query *query, int i)
{
    struct edge edge = query->node->inputs[i];
    return &graph_node(query->graph, edge.node)->outputs[edge.slot];
}

/* An unknown dimension counts as `assume`, a tensor of unknown rank as a vector. */
double cost_dim(const struct shape *shape, int axis, int64_t assume);
double cost_count(const struct shape *shape, int64_t assume);

/* Bytes of a tensor (texts count as 16 bytes each), of all outputs, of all inputs and outputs. */
double cost_bytes(const struct node_output *output, int64_t assume);
double cost_bytes_out(const struct cost_query *query);
double cost_bytes_all(const struct cost_query *query);
/* Elements of the largest input or output. */
double cost_largest(const struct cost_query *query);

/* Costs that many ops share. */
void cost_nothing(const struct cost_query *query, struct op_cost *cost); /* is_free */
void cost_view(const struct cost_query *query, struct op_cost *cost);    /* a call */
/* One operation for each element of the largest tensor, or twenty, as of Exp. */
void cost_elements(const struct cost_query *query, struct op_cost *cost);
void cost_functions(const struct cost_query *query, struct op_cost *cost);
/* One operation for each element of the outputs: only what becomes of them is read of the inputs,
 * or nothing. */
void cost_picked(const struct cost_query *query, struct op_cost *cost);
void cost_made(const struct cost_query *query, struct op_cost *cost);

/* Returns the cost that the node's op declares, or cost_elements if it declares none. */
struct op_cost cost_of(const struct cost_query *query);

#endif
