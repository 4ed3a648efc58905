/* SPDX-License-Identifier: Apache-2.0
 *
 * Estimates of what an op computes. Rates are those of one ordinary machine: an estimate is for
 * comparing devices and links, and what was measured takes its place.
 */
#include <string.h>

#include "pass/place/cost.h"

#define STRING_BYTES 16

struct cost_rates cost_rates_of(const char *type)
{
    if (!strcmp(type, "CPU"))
        return (struct cost_rates){.operations = 40e9, .bandwidth = 8e9, .overhead = 500};
    return (struct cost_rates){.operations = 10e12, .bandwidth = 500e9, .overhead = 5000};
}

static double dim(const struct shape *shape, int axis, int64_t assume)
{
    if (shape->rank == SHAPE_UNKNOWN || axis >= shape->rank || shape->dims[axis] < 0)
        return (double)assume;
    return (double)shape->dims[axis];
}

/* A tensor of unknown rank counts as a vector. */
static double count(const struct shape *shape, int64_t assume)
{
    double n = shape->rank == SHAPE_UNKNOWN ? (double)assume : 1;
    for (int i = 0; i < shape->rank; i++)
        n *= dim(shape, i, assume);
    return n;
}

double cost_bytes(const struct node_output *output, int64_t assume)
{
    double each = output->type == STRING ? STRING_BYTES : (double)dtype_bytes(output->type);
    return count(&output->shape, assume) * each;
}

static const struct node_output *input_of(const struct node *node, const struct graph *graph, int i)
{
    return &graph_node(graph, node->inputs[i].node)->outputs[node->inputs[i].slot];
}

/* 2 m n k, where k is the length that the product sums over. */
static double product(const struct node *node, const struct graph *graph, int64_t assume,
                      const char *transpose)
{
    const struct shape *a = &input_of(node, graph, 0)->shape;
    int axis = a->rank - (node_bool(node, transpose) ? 2 : 1);
    return 2 * count(&node->outputs[0].shape, assume) * dim(a, axis < 0 ? 0 : axis, assume);
}

/* Every element of the result (or of its gradient) meets one output channel's filter. */
static double convolution(const struct shape *result, const struct shape *filter, int64_t assume)
{
    double channels = dim(filter, filter->rank > 0 ? filter->rank - 1 : 0, assume);
    return channels > 0 ? 2 * count(result, assume) * count(filter, assume) / channels : 0;
}

static double elements(const struct node *node, const struct graph *graph, int64_t assume)
{
    double most = 0;
    for (int i = 0; i < node->n_inputs; i++) {
        double n = count(&input_of(node, graph, i)->shape, assume);
        most = n > most ? n : most;
    }
    for (int i = 0; i < node->n_outputs; i++) {
        double n = count(&node->outputs[i].shape, assume);
        most = n > most ? n : most;
    }
    return most;
}

/* Of each matrix of n columns, n steps over all its elements. */
static double elimination(const struct node *node, const struct graph *graph, int64_t assume)
{
    const struct shape *a = &input_of(node, graph, 0)->shape;
    return elements(node, graph, assume) * dim(a, a->rank > 0 ? a->rank - 1 : 0, assume);
}

static bool is_one_of(const struct node *node, const char *const *names)
{
    while (*names && !node_is(node, *names))
        names++;
    return *names != NULL;
}

double cost_operations(const struct node *node, const struct graph *graph, int64_t assume)
{
    /* Polynomials of a dozen terms and a few conditions. */
    static const char *const functions[] = {"Exp",
                                            "Log",
                                            "Log1p",
                                            "Tanh",
                                            "Sigmoid",
                                            "Sin",
                                            "Cos",
                                            "Erf",
                                            "Pow",
                                            "Elu",
                                            "Softplus",
                                            "SoftplusGrad",
                                            "Softmax",
                                            "LogSoftmax",
                                            "RandomUniform",
                                            "RandomStandardNormal",
                                            "TruncatedNormal",
                                            "Multinomial",
                                            NULL};
    static const char *const solvers[] = {
        "MatrixInverse", "MatrixDeterminant",     "Cholesky", "CholeskyGrad",
        "MatrixSolve",   "MatrixTriangularSolve", NULL};
    if (node_is(node, "MatMul"))
        return product(node, graph, assume, "transpose_a");
    if (node_is(node, "BatchMatMul"))
        return product(node, graph, assume, "adj_x");
    if (node_is(node, "Conv2D"))
        return convolution(&node->outputs[0].shape, &input_of(node, graph, 1)->shape, assume);
    if (node_is(node, "Conv2DBackpropInput"))
        return convolution(&input_of(node, graph, 2)->shape, &input_of(node, graph, 1)->shape,
                           assume);
    if (node_is(node, "Conv2DBackpropFilter"))
        return convolution(&input_of(node, graph, 2)->shape, &node->outputs[0].shape, assume);
    if (is_one_of(node, solvers))
        return elimination(node, graph, assume);
    return elements(node, graph, assume) * (is_one_of(node, functions) ? 20 : 1);
}

/* Hands its input on, or looks at no more than its shape. */
bool cost_is_view(const struct node *node)
{
    static const char *const names[] = {"Identity",   "StopGradient", "Reshape",
                                        "ExpandDims", "Squeeze",      "PlaceholderWithDefault",
                                        NULL};
    return node_has(node, OP_SHAPE_ONLY) || node_has(node, OP_CONTROL_FLOW) ||
           is_one_of(node, names);
}

static bool computes_nothing(const struct node *node)
{
    static const char *const names[] = {"Const", "Variable", "NoOp", "ControlTrigger", NULL};
    return node_has(node, OP_SOURCE) || is_one_of(node, names);
}

double cost_estimate_ns(const struct node *node, const struct graph *graph, int64_t assume,
                        const struct cost_rates *rates)
{
    double bytes = 0;
    if (computes_nothing(node))
        return 0;
    if (cost_is_view(node))
        return rates->overhead;
    for (int i = 0; i < node->n_inputs; i++)
        bytes += cost_bytes(input_of(node, graph, i), assume);
    for (int i = 0; i < node->n_outputs; i++)
        bytes += cost_bytes(&node->outputs[i], assume);
    double compute = cost_operations(node, graph, assume) / rates->operations;
    double move = bytes / rates->bandwidth;
    return rates->overhead + 1e9 * (compute > move ? compute : move);
}
