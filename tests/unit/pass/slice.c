/* SPDX-License-Identifier: Apache-2.0
 *
 * Partitioned variables: an op declared element-wise is computed in each slice alone.
 */
#include <stdio.h>
#include <string.h>

#include "lib/unit.h"

#include "graph/text.h"
#include "ops/ops.h"
#include "pass/slice/slice.h"

static int count(const struct graph *graph, const char *op)
{
    int n = 0;
    for (size_t i = 0; i < graph->nodes.n; i++)
        n += node_is(graph_node(graph, (int)i), op);
    return n;
}

static bool takes_float32(const struct op *op)
{
    int attr = op->n_inputs == 1 ? op->inputs[0].type_attr : -1;
    return attr >= 0 && op->inputs[0].number_attr < 0 && op->n_outputs == 1 &&
           op->outputs[0].type_attr == attr && op->attrs[attr].types & DTYPE_BIT(FLOAT32);
}

/* A table of three slices gets op(random numbers): if the op works by rows, no slice needs more
 * than its own. */
static void check(const struct op *op, int whole)
{
    struct placement placement = {.cluster = NULL};
    struct graph *graph = NULL, *sliced = NULL;
    struct error err = ERROR_INIT;
    char text[500];
    int n = snprintf(text, sizeof text,
                     "t = Variable() {dtype=float32, shape=[10,4], _partitions=3}\n"
                     "s = Const() {dtype=int32, value=[10,4]}\n"
                     "r = RandomUniform(s) {dtype=float32}\n"
                     "y = %s(r)\na = Assign(t, y)\n",
                     op->def->name);
    if (placement_add(&placement, "CPU:0", &err) || placement_add(&placement, "CPU:1", &err) ||
        graph_parse_text(text, (size_t)n, "test", ops_registry(), &graph, &err) ||
        slice_variables(graph, &(struct slice_options){&placement, 0}, &sliced, &err))
        fail_msg("%s: %s", op->def->name, err.text);
    assert_int_equal(count(sliced, "Variable"), 3);
    assert_int_equal(count(sliced, "Assign"), 3);
    if (count(sliced, "Slice") != (whole ? 3 : 0) ||
        count(sliced, op->def->name) != (whole ? 1 : 3))
        fail_msg("%s is %s", op->def->name, whole ? "cut" : "not cut");
    graph_free(sliced);
    graph_free(graph);
    placement_release(&placement);
}

static void test_what_is_declared_row_wise_is_cut(void **state)
{
    (void)state;
    int n = 0;
    for (size_t i = 0; i < registry_count(ops_registry()); i++) {
        const struct op *op = registry_at(ops_registry(), i);
        if (op->rows != ROWS_ALIKE || !takes_float32(op))
            continue;
        check(op, false);
        n++;
    }
    assert_true(n > 20);
}

static void test_what_is_not_is_made_whole(void **state)
{
    (void)state;
    check(registry_find(ops_registry(), "Softmax"), true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_declared_row_wise_is_cut),
        cmocka_unit_test(test_what_is_not_is_made_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
