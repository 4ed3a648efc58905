/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor parallelism of dense layers: the form of each value of a model.
 */
#include <stdio.h>
#include <string.h>

#include "lib/scripts.h"

#include "graph/worker_attr.h"
#include "pass/dense/dense.h"

#define BEGIN                                                                                      \
    "x = Placeholder{dtype = float32, shape = {-1, 8}}\n"                                          \
    "y = Placeholder{dtype = int32, shape = {-1}}\n"
#define END                                                                                        \
    "logits = nn.dense(h, 10, {name = 'last'})\n"                                                  \
    "entry.train = minimize(nn.cross_entropy(logits, y), optim.adam{rate = 0.1})\n"

static struct graph *cut(const char *script, struct graph **from)
{
    const struct dense_options options = {.pass = NULL};
    struct graph *to = NULL;
    struct error err = ERROR_INIT;
    *from = scripts_build(script);
    if (dense_graph(*from, &options, &to, &err))
        fail_msg("%s", err.text);
    return to;
}

static void refused(const char *script, const char *why)
{
    const struct dense_options options = {.pass = NULL};
    struct graph *from = scripts_build(script), *to = NULL;
    struct error err = ERROR_INIT;
    assert_int_not_equal(dense_graph(from, &options, &to, &err), 0);
    if (!strstr(err.text, why) || strchr(err.text, '\n'))
        fail_msg("%s", err.text);
    assert_null(to);
    graph_free(from);
}

/* Returns the axis along which a variable is partitioned; -1: it is whole. */
static int axis_of(const struct graph *graph, const char *name)
{
    const struct node *node = graph_find(graph, name);
    assert_non_null(node);
    if (!node_attr(node, WORKER_PART_SHAPE))
        return -1;
    int axis = (int)node_int(node, WORKER_PART_AXIS);
    assert_int_equal(node->outputs[0].shape.dims[axis], SHAPE_UNKNOWN);
    assert_int_not_equal(node_attr(node, WORKER_PART_SHAPE)->shape->dims[axis], SHAPE_UNKNOWN);
    return axis;
}

/* Counts the nodes of the op that get the rows of all workers, or parts. */
static int count(const struct graph *graph, const char *op)
{
    int n = 0;
    for (size_t i = 0; i < graph->nodes.n; i++)
        n += node_is(graph_node(graph, (int)i), op);
    return n;
}

static void expect_exchanges(const struct graph *graph, int gathers, int scatters, int own)
{
    assert_int_equal(count(graph, "CollectiveAllGather"), gathers);
    assert_int_equal(count(graph, "CollectiveReduceScatter"), scatters);
    assert_int_equal(count(graph, "CollectiveGrad"), own);
}

static void test_columns_then_rows(void **state)
{
    (void)state;
    struct graph *from, *to = cut(BEGIN "h = nn.dense(x, 7, {name = 'a', activation = Relu})\n"
                                        "h = nn.dense(h, 5, {name = 'b', activation = Tanh})\n" END,
                                  &from);
    assert_int_equal(axis_of(to, "a/W"), 1);
    assert_int_equal(axis_of(to, "a/b"), 0);
    assert_int_equal(axis_of(to, "b/W"), 0);
    assert_int_equal(axis_of(to, "b/b"), 0);
    assert_int_equal(axis_of(to, "last/W"), 0);
    assert_int_equal(axis_of(to, "last/b"), -1); /* each worker needs it for its own rows */
    assert_int_equal(axis_of(to, "b/W/adam/m"), 0);
    assert_int_equal(axis_of(to, "a/W/adam/v"), 1);
    assert_int_equal(axis_of(to, "adam/beta1_power"), -1);
    /* forward, x is gathered and b's terms are scattered; backward, b's errors are gathered; x is
     * fed, so no errors go back to it */
    expect_exchanges(to, 2, 1, 1);
    assert_int_equal(count(to, "AllReduce"), 1); /* the loss' errors */
    graph_free(to);
    graph_free(from);
}

/* In a single layer each worker has columns; the parts of outputs are exchanged into rows. */
static void test_a_layer_alone(void **state)
{
    (void)state;
    struct graph *from, *to = cut(BEGIN "h = Relu(x)\n" END, &from);
    assert_int_equal(axis_of(to, "last/W"), 1);
    expect_exchanges(to, 1, 0, 1);
    assert_int_equal(count(to, "Pad"), 1);
    graph_free(to);
    graph_free(from);
}

/* An op without a rule gets all rows and columns, and its neighbours go on with parts. */
static void test_what_is_not_declared_is_given_the_whole(void **state)
{
    (void)state;
    struct graph *from, *to = cut(BEGIN "h = Softmax(nn.dense(x, 7, {name = 'a'}))\n" END, &from);
    assert_int_equal(axis_of(to, "a/W"), 1);
    assert_int_equal(axis_of(to, "last/W"), 0);
    const struct node *softmax = graph_find(to, "h");
    const struct node *given = graph_node(to, softmax->inputs[0].node);
    assert_true(node_is(given, "Transpose")); /* columns gathered */
    graph_free(to);
    graph_free(from);
}

/* A matrix with two products, as in a recurrent network, stays whole; so does its bias. */
static void test_a_matrix_that_is_used_twice_is_whole(void **state)
{
    (void)state;
    struct graph *from, *to = cut(BEGIN "w = variable{name = 'w', shape = {8, 8}, init = 0.1}\n"
                                        "h = Tanh(MatMul(Tanh(MatMul(x, w)), w))\n" END,
                                  &from);
    assert_int_equal(axis_of(to, "w"), -1);
    assert_int_equal(axis_of(to, "last/W"), 1);
    graph_free(to);
    graph_free(from);
}

/* A vector with other readers stays whole, and is sliced where it is added. */
static void test_a_bias_that_others_read_is_whole(void **state)
{
    (void)state;
    struct graph *from,
        *to = cut(BEGIN "b = variable{name = 'b', shape = {10}, init = 0.1}\n"
                        "h = Relu(nn.dense(x, 10, {name = 'a', bias = false}) + b)\n"
                        "logits = nn.dense(h, 10, {name = 'last'}) + b\n"
                        "entry.train = minimize(nn.cross_entropy(logits, y), "
                        "optim.sgd{rate = 0.1})\n",
                  &from);
    assert_int_equal(axis_of(to, "b"), -1);
    assert_int_equal(axis_of(to, "a/W"), 1);
    graph_free(to);
    graph_free(from);
}

/* Each pass has its own layers and what follows them; variables and the nodes before the layers
 * exist once. A matrix is partitioned once, and its gradient is the passes' sum. */
static void test_passes(void **state)
{
    (void)state;
    const char *script = BEGIN "h = nn.dense(Square(x), 7, {name = 'a', activation = Relu})\n" END;
    const struct dense_options options = {.passes = 3, .by_worker = true};
    struct graph *from = scripts_build(script), *passes = NULL, *to = NULL;
    struct error err = ERROR_INIT;
    if (dense_passes(from, &options, &passes, &err) || dense_graph(passes, &options, &to, &err))
        fail_msg("%s", err.text);
    assert_int_equal(count(to, "Square"), 1);
    assert_int_equal(count(to, "Variable"), count(from, "Variable"));
    assert_int_equal(count(to, "MatMul"), 3 * count(from, "MatMul"));
    assert_int_equal(axis_of(to, "a/W"), 1);
    const struct node *gradient = graph_find(to, "a/W/gradient");
    assert_true(node_is(graph_node(to, gradient->inputs[0].node), "Add"));
    expect_exchanges(to, 3, 0, 6); /* the last layer's rows, and h by its name */
    assert_non_null(graph_find(to, "pass_2/a/MatMul"));
    struct edge logits;
    assert_int_equal(graph_parse_edge(to, "logits", &logits, &err), 0);
    graph_free(to);
    graph_free(passes);
    graph_free(from);
}

static void test_what_cannot_be(void **state)
{
    (void)state;
    refused("x = Placeholder{dtype = float32, shape = {4, 8}}\n"
            "y = Placeholder{dtype = int32, shape = {4}}\n"
            "h = x\n" END,
            "there is no dense layer");
    refused(BEGIN "t = Placeholder{dtype = bool, shape = {}}\n"
                  "h = nn.dropout(nn.dense(x, 7, {name = 'a'}), 0.5, {training = t})\n" END,
            "control flow between dense layers");
    refused(BEGIN "h = nn.dense(x, 7, {name = 'a'})\n"
                  "h = Transpose(Transpose(h, {1, 0}), {1, 0})\n" END,
            "only the first dimension");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns_then_rows),
        cmocka_unit_test(test_a_layer_alone),
        cmocka_unit_test(test_what_is_not_declared_is_given_the_whole),
        cmocka_unit_test(test_a_matrix_that_is_used_twice_is_whole),
        cmocka_unit_test(test_a_bias_that_others_read_is_whole),
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_what_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
