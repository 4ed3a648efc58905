/* SPDX-License-Identifier: Apache-2.0
 *
 * The cost that an op declares: operations, and bytes that its kernel moves, from the shapes of a
 * node's inputs and outputs. The placer turns it into time on a device (pass/place/cost.h).
 */
#ifndef TF_GRAPH_OP_COST_H
#define TF_GRAPH_OP_COST_H

#include "graph/graph.h"

struct op_cost {
    bool is_free; /* it never runs */
    double operations;
    double bytes; /* read and written; 0: results share the inputs' memory or are a few numbers */
};

struct cost_query {
    const struct node *node;
    const struct graph *graph;
    int64_t assume; /* value of an unknown dimension */
};

static inline const struct node_output *cost_input(const struct cost_query *query, int i)
{
    return graph_output(query->graph, query->node->inputs[i]);
}

/* An unknown dimension counts as `assume`, a tensor of unknown rank as a vector. */
double cost_dim(const struct shape *shape, int axis, int64_t assume);
double cost_count(const struct shape *shape, int64_t assume);

/* Bytes of a tensor (a string counts as 16), of all inputs and outputs. */
double cost_bytes(const struct node_output *output, int64_t assume);
double cost_bytes_all(const struct cost_query *query);
/* Returns the number of elements of the largest input or output. */
double cost_largest(const struct cost_query *query);

/* Costs that many ops share. */
void cost_nothing(const struct cost_query *query, struct op_cost *cost); /* is_free */
void cost_view(const struct cost_query *query, struct op_cost *cost);    /* a call */
/* One operation per element of the largest tensor; or twenty, as for Exp. */
void cost_elements(const struct cost_query *query, struct op_cost *cost);
void cost_functions(const struct cost_query *query, struct op_cost *cost);
/* One operation per element of the outputs, reading as much of the inputs as is output, or nothing.
 */
void cost_picked(const struct cost_query *query, struct op_cost *cost);
void cost_made(const struct cost_query *query, struct op_cost *cost);

/* Returns the cost that the node's op declares, or cost_elements if it declares none. */
struct op_cost cost_of(const struct cost_query *query);

#endif
