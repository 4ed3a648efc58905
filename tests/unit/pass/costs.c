/* SPDX-License-Identifier: Apache-2.0
 *
 * What a node costs: operations and bytes worked out by hand, and files of measured times.
 */
#include <math.h>
#include <string.h>

#include "lib/unit.h"

#include "graph/text.h"
#include "ops/ops.h"
#include "pass/place/place.h"

static struct graph *parse(const char *text)
{
    struct graph *graph;
    struct error err = ERROR_INIT;
    if (graph_parse_text(text, strlen(text), "m", ops_registry(), &graph, &err))
        fail_msg("%s", err.text);
    return graph;
}

static struct cost_query query(const struct graph *graph, const char *name)
{
    return (struct cost_query){graph_find(graph, name), graph, 8};
}

static double bytes_of(const struct graph *graph, const char *name)
{
    struct cost_query of = query(graph, name);
    return cost_of(&of).bytes;
}

static double operations_of(const struct graph *graph, const char *name)
{
    struct cost_query of = query(graph, name);
    return cost_of(&of).operations;
}

static void test_estimates(void **state)
{
    (void)state;
    struct cost_rates rates = {.operations = 1e9, .bandwidth = 1e9, .overhead = 100};
    struct graph *graph = parse("a = Placeholder() {dtype=float32, shape=[?,64]}\n"
                                "b = Placeholder() {dtype=float32, shape=[64,10]}\n"
                                "m = MatMul(a, b)\nn = Neg(a)\n"
                                "t = MatMul(a, a) {transpose_a=true}\n");
    const struct cost_query of_n = query(graph, "n"), of_a = query(graph, "a");
    assert_true(operations_of(graph, "m") == 2.0 * 8 * 64 * 10);
    assert_true(operations_of(graph, "t") == 2.0 * 64 * 64 * 8);
    assert_true(cost_bytes(&of_n.node->outputs[0], 8) == 4.0 * 8 * 64);
    /* More bytes than operations: 2048 in, 2048 out. */
    assert_true(fabs(cost_estimate_ns(&of_n, &rates) - (100 + 4096)) < 1e-6);
    assert_true(cost_estimate_ns(&of_a, &rates) == 0);
    graph_free(graph);
}

/* Rows are taken out of a table, or changed in it, without a look at the others; what has the shape
 * of something is still written; what shares memory moves nothing. */
static void test_costs_are_of_what_is_touched(void **state)
{
    (void)state;
    struct graph *graph = parse("t = Variable() {dtype=float32, shape=[1000000,4]}\n"
                                "i = Placeholder() {dtype=int32, shape=[10]}\n"
                                "rows = Gather(t, i)\n"
                                "add = ScatterAdd(t, i, rows)\n"
                                "zeros = ZerosLike(rows)\n"
                                "same = Reshape(rows, shape)\n"
                                "shape = Const() {dtype=int32, value=[40]}\n");
    const struct cost_query of_same = query(graph, "same"), of_t = query(graph, "t");
    assert_true(bytes_of(graph, "rows") == 2 * 4.0 * 40);
    assert_true(bytes_of(graph, "add") == 3 * 4.0 * 40 + 4.0 * 10);
    assert_true(bytes_of(graph, "zeros") == 4.0 * 40);
    assert_true(bytes_of(graph, "same") == 0);
    assert_true(cost_is_view(&of_same));
    assert_true(cost_of(&of_t).is_free);
    graph_free(graph);
}

/* The time of a node goes before that of its op. */
static void test_measured_costs(void **state)
{
    (void)state;
    struct costs costs = {0};
    struct error err = ERROR_INIT;
    struct graph *graph = parse("a = Placeholder() {dtype=float32, shape=[?,64]}\n"
                                "m = Neg(a)\nn = Neg(a)\no = Abs(a)\n");
    if (costs_parse(&costs, "node m 5\nop Neg 7\n", "costs", &err))
        fail_msg("%s", err.text);
    double ns;
    assert_true(costs_find(&costs, graph_find(graph, "m"), &ns) && ns == 5);
    assert_true(costs_find(&costs, graph_find(graph, "n"), &ns) && ns == 7);
    assert_false(costs_find(&costs, graph_find(graph, "o"), &ns));
    costs_release(&costs);
    graph_free(graph);
}

static void costs_fail(const char *text, const char *message)
{
    struct costs costs = {0};
    struct error err = ERROR_INIT;
    int code = costs_parse(&costs, text, "f", &err);
    unit_assert_error(code, err, ERR_DATA, message);
    costs_release(&costs);
}

static void test_wrong_costs(void **state)
{
    (void)state;
    costs_fail("x a 1\n", "f:1: 'x' is neither op nor node");
    costs_fail("# c\nop Neg\n", "f:2: 2 words instead of 3: op NAME NANOSECONDS");
    costs_fail("op Neg -1\n", "f:1: '-1' is not a time in nanoseconds");
    costs_fail("op Neg inf\n", "f:1: 'inf' is not a time in nanoseconds");
    costs_fail("op Neg 1\nop Neg 2\n", "f:2: op Neg is there twice");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_estimates),
        cmocka_unit_test(test_costs_are_of_what_is_touched),
        cmocka_unit_test(test_measured_costs),
        cmocka_unit_test(test_wrong_costs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
