/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/op_cost.h"

#define STRING_BYTES 16
#define FUNCTION_OPERATIONS 20 /* a polynomial of a dozen terms and a few conditions */

double cost_dim(const struct shape *shape, int axis, int64_t assume)
{
    if (shape->rank == SHAPE_UNKNOWN || axis >= shape->rank || shape->dims[axis] < 0)
        return (double)assume;
    return (double)shape->dims[axis];
}

double cost_count(const struct shape *shape, int64_t assume)
{
    double n = shape->rank == SHAPE_UNKNOWN ? (double)assume : 1;
    for (int i = 0; i < shape->rank; i++)
        n *= cost_dim(shape, i, assume);
    return n;
}

double cost_bytes(const struct node_output *output, int64_t assume)
{
    double each = output->type == STRING ? STRING_BYTES : (double)dtype_bytes(output->type);
    return cost_count(&output->shape, assume) * each;
}

static double cost_bytes_out(const struct cost_query *query)
{
    double bytes = 0;
    for (int i = 0; i < query->node->n_outputs; i++)
        bytes += cost_bytes(&query->node->outputs[i], query->assume);
    return bytes;
}

double cost_bytes_all(const struct cost_query *query)
{
    double bytes = cost_bytes_out(query);
    for (int i = 0; i < query->node->n_inputs; i++)
        bytes += cost_bytes(cost_input(query, i), query->assume);
    return bytes;
}

static double elements_out(const struct cost_query *query)
{
    double most = 0;
    for (int i = 0; i < query->node->n_outputs; i++) {
        double n = cost_count(&query->node->outputs[i].shape, query->assume);
        most = n > most ? n : most;
    }
    return most;
}

double cost_largest(const struct cost_query *query)
{
    double most = elements_out(query);
    for (int i = 0; i < query->node->n_inputs; i++) {
        double n = cost_count(&cost_input(query, i)->shape, query->assume);
        most = n > most ? n : most;
    }
    return most;
}

void cost_nothing(const struct cost_query *query, struct op_cost *cost)
{
    (void)query;
    cost->is_free = true;
}

void cost_view(const struct cost_query *query, struct op_cost *cost)
{
    (void)query;
    cost->operations = cost->bytes = 0;
}

void cost_elements(const struct cost_query *query, struct op_cost *cost)
{
    cost->operations = cost_largest(query);
    cost->bytes = cost_bytes_all(query);
}

void cost_functions(const struct cost_query *query, struct op_cost *cost)
{
    cost->operations = FUNCTION_OPERATIONS * cost_largest(query);
    cost->bytes = cost_bytes_all(query);
}

void cost_picked(const struct cost_query *query, struct op_cost *cost)
{
    cost->operations = elements_out(query);
    cost->bytes = 2 * cost_bytes_out(query);
}

void cost_made(const struct cost_query *query, struct op_cost *cost)
{
    cost->operations = elements_out(query);
    cost->bytes = cost_bytes_out(query);
}

struct op_cost cost_of(const struct cost_query *query)
{
    const struct op_def *def = query->node->op->def;
    struct op_cost cost = {.is_free = false};
    (def->cost ? def->cost : cost_elements)(query, &cost);
    return cost;
}
