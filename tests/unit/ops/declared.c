/* SPDX-License-Identifier: Apache-2.0
 *
 * The declarations of ops match their kernels.
 */
#include "graph/infer.h"
#include "lib/session.h"
#include "lib/unit.h"
#include "pass/simplify/simplify.h"

static bool may_wait(const char *op)
{
    const struct kernel_table *table = ops_kernels();
    for (size_t i = 0; i < table->n; i++)
        if (!strcmp(table->rows[i].op, op) && table->rows[i].flags & KERNEL_ASYNC)
            return true;
    return false;
}

static void test_ops_of_waiting_kernels_say_so(void **state)
{
    (void)state;
    for (size_t i = 0; i < registry_count(ops_registry()); i++) {
        const struct op_def *def = registry_at(ops_registry(), i)->def;
        if (may_wait(def->name) != !!(def->flags & OP_ASYNC))
            fail_msg("%s: OP_ASYNC and KERNEL_ASYNC disagree", def->name);
    }
}

/* The kernel of StackPush, which keeps its element, under an op that does not declare it. */
static void test_who_keeps_an_input_declares_it(void **state)
{
    (void)state;
    struct op_def silent = *registry_find(ops_registry(), "StackPush")->def;
    const struct op_def *ops[] = {registry_find(ops_registry(), "Const")->def,
                                  registry_find(ops_registry(), "Stack")->def, &silent};
    static const char text[] = "s = Stack() {elem_type=float32}\n"
                               "x = Const() {dtype=float32, value=[1,2]}\n"
                               "y = StackPush(s, x)\n";
    struct registry *registry = registry_new();
    struct fixture f = {.err = ERROR_INIT};
    silent.keeps = 0;
    assert_int_equal(registry_add(registry, ops, 3, &f.err), 0);
    assert_int_equal(graph_parse_text(text, strlen(text), "test", registry, &f.graph, &f.err), 0);
    struct session_options options = {
        .plan = {.kernels = ops_kernels(), .device = fixture_device()}};
    f.session = session_new(f.graph, &options);
    assert_int_equal(fixture_run(&f, "^y", NULL, NULL, NULL), ERR_INTERNAL);
    assert_non_null(strstr(f.err.text, "not declared that input 1 is kept"));
    fixture_close(&f);
    registry_free(registry);
}

static void test_arguments_of_inputs(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f,
                 "c = Const() {dtype=bool, value=true}\n"
                 "x = Const() {dtype=float32, value=[1,2]}\n"
                 "a = Assert(c, x, x, c)\n"
                 "p = AggregatorPush(x, c) {aggregator=\"a\"}\n"
                 "i = Const() {dtype=int32, value=[0,1]}\n"
                 "d = DynamicStitch(i, i, x, x)\n",
                 false);
    const struct node *d = graph_find(f.graph, "d"), *push = graph_find(f.graph, "p");
    int i = 3;
    assert_int_equal(node_argument(d, d->op->inputs, &i), 1);
    assert_int_equal(i, 1);
    assert_true(node_keeps(push, 0) && node_keeps(push, 1));
    assert_false(node_keeps(d, 0) || node_keeps(graph_find(f.graph, "a"), 2));
    fixture_close(&f);
}

/* ---- a shape that is known only in a step ---- */

static void test_a_fused_op_takes_what_turns_out_to_be_a_scalar(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f,
                 "m = Const() {dtype=float32, value=[[1,2],[3,4]]}\n"
                 "x = Placeholder() {dtype=float32, shape=[?]}\n"
                 "sum = FusedElementwise(m, x) {ops=[\"Add\"], operands=[0,1]}\n",
                 false);
    const float values[] = {10, 20};
    const struct shape one = shape_vector(1), two = shape_vector(2);
    struct tensor scalar = tensor_borrow(FLOAT32, &one, (void *)(uintptr_t)values), sum;
    struct tensor row = tensor_borrow(FLOAT32, &two, (void *)(uintptr_t)values);
    assert_int_equal(fixture_run(&f, "sum", "x", &scalar, &sum), 0);
    assert_float_equal(tensor_get_float64(&sum, 3), 14, 0);
    tensor_release(&sum);
    assert_int_equal(fixture_run(&f, "sum", "x", &row, NULL), ERR_DATA);
    assert_non_null(strstr(f.err.text, "input 1 is [2], neither the output's [2,2] nor a scalar"));
    fixture_close(&f);
}

static void test_an_element_has_the_shape_that_is_declared_of_it(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f,
                 "s = Stack() {elem_type=float32}\n"
                 "x = Placeholder() {dtype=float32, shape=?}\n"
                 "push = StackPush(s, x)\n"
                 "bias = StackPop(s, ^push) {elem_type=float32, shape=[1000]}\n"
                 "v = Variable() {dtype=float32, shape=[2,1000]}\n"
                 "shape = Const() {dtype=int32, value=[2,1000]}\n"
                 "one = Const() {dtype=float32, value=1}\n"
                 "ones = Fill(shape, one)\n"
                 "init = Assign(v, ones)\n"
                 "sum = BiasAdd(v, bias)\n",
                 true);
    float value = 1;
    const struct shape shape = shape_vector(1);
    const struct tensor given = tensor_borrow(FLOAT32, &shape, &value);
    fixture_do(&f, "^init");
    assert_int_equal(fixture_run(&f, "sum", "x", &given, NULL), ERR_INTERNAL);
    assert_non_null(strstr(f.err.text, "planned as [1000], but is [1]"));
    fixture_close(&f);
}

/* ---- an op unknown to the passes ---- */

static bool twice_value(const struct infer *infer, struct shape *value)
{
    if (!infer_value_shape(infer, 0, value))
        return false;
    for (int i = 0; i < value->rank; i++)
        value->dims[i] = value->dims[i] < 0 ? -1 : 2 * value->dims[i];
    return true;
}

static const struct op_def twice = {.name = "Twice",
                                    .inputs = "x: T",
                                    .outputs = "y: T",
                                    .attrs = "T: any",
                                    .shape = infer_unchanged,
                                    .value = twice_value};
static const struct op_def mirror = {.name = "Mirror",
                                     .inputs = "x: T",
                                     .outputs = "y: T",
                                     .attrs = "T: any",
                                     .flags = OP_INVOLUTION,
                                     .shape = infer_unchanged};
static const struct op_def lazy = {.name = "Lazy",
                                   .inputs = "x: T, by: T",
                                   .outputs = "y: T",
                                   .attrs = "T: any",
                                   .identity = {SAME_OPERAND, 7, 0, "is lazy"},
                                   .shape = infer_unchanged};

static struct graph *parse_with_new_ops(struct registry *registry, const char *text)
{
    struct error err = ERROR_INIT;
    struct graph *graph = NULL;
    const struct op_def *ops[16] = {&twice, &mirror, &lazy};
    static const char *const known[] = {"Const", "Fill", "Placeholder", "Shape"};
    for (int i = 0; i < 4; i++)
        ops[3 + i] = registry_find(ops_registry(), known[i])->def;
    if (registry_add(registry, ops, 7, &err) ||
        graph_parse_text(text, strlen(text), "test", registry, &graph, &err))
        fail_msg("%s", err.text);
    return graph;
}

static void test_shapes_follow_what_a_new_op_says_of_its_value(void **state)
{
    (void)state;
    struct registry *registry = registry_new();
    struct graph *graph =
        parse_with_new_ops(registry, "x = Placeholder() {dtype=float32, shape=[?,4]}\n"
                                     "s = Shape(x)\nd = Twice(s)\n"
                                     "one = Const() {dtype=float32, value=1}\n"
                                     "big = Const() {dtype=int32, value=[2000000000]}\n"
                                     "wraps = Twice(big)\n"
                                     "f = Fill(d, one)\ng = Fill(wraps, one)\n");
    assert_string_equal(shape_text(&graph_find(graph, "f")->outputs[0].shape), "[?,8]");
    assert_string_equal(shape_text(&graph_find(graph, "g")->outputs[0].shape), "[?]");
    graph_free(graph);
    registry_free(registry);
}

static void test_simplification_follows_what_a_new_op_says(void **state)
{
    (void)state;
    struct registry *registry = registry_new();
    struct error err = ERROR_INIT;
    struct graph *graph =
        parse_with_new_ops(registry, "x = Placeholder() {dtype=float32, shape=[4]}\n"
                                     "seven = Const() {dtype=float32, value=7}\n"
                                     "a = Mirror(x)\nb = Mirror(a)\nc = Lazy(b, seven)\n"
                                     "d = Lazy(seven, x)\nend = Mirror(c)\nentry run = end, d\n");
    const struct pass *arith = pass_find("arith");
    struct pass_options options = {.n_keep = 0};
    struct pass_result result;
    assert_int_equal(pass_optimize(graph, &arith, 1, &options, &result, &err), 0);
    const struct node *end = graph_find(result.graph, "end");
    assert_string_equal(graph_node(result.graph, end->inputs[0].node)->name, "x");
    assert_non_null(graph_find(result.graph, "d"));
    pass_result_release(&result);
    graph_free(graph);
    registry_free(registry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ops_of_waiting_kernels_say_so),
        cmocka_unit_test(test_who_keeps_an_input_declares_it),
        cmocka_unit_test(test_arguments_of_inputs),
        cmocka_unit_test(test_a_fused_op_takes_what_turns_out_to_be_a_scalar),
        cmocka_unit_test(test_an_element_has_the_shape_that_is_declared_of_it),
        cmocka_unit_test(test_shapes_follow_what_a_new_op_says_of_its_value),
        cmocka_unit_test(test_simplification_follows_what_a_new_op_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
