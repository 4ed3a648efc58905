/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of axes (graph/index_rule.h): what an op's kernel computes is what its rule says. An
 * element of a result changes with those elements alone that are at the same place of an axis; over
 * an axis that is summed, results of parts add up to that of all.
 */
#include <math.h>

#include "lib/session.h"
#include "lib/unit.h"

#include "base/str.h"
#include "graph/index_rule.h"

#define INPUTS_MAX 2

#define WINDOWS "{strides=[1,1,1,1], padding=\"VALID\"}"

/* A node whose inputs have these shapes, of which it needs so many dimensions whole, and behind
 * them a constant list of axes. */
static const struct example {
    const char *op, *attrs, *axes;
    struct shape in[INPUTS_MAX];
    int n_whole[INPUTS_MAX];
} examples[] = {
    {"MatMul", "", NULL, {{2, {3, 4}}, {2, {4, 5}}}, {0}},
    {"MatMul", "{transpose_a=true}", NULL, {{2, {4, 3}}, {2, {4, 5}}}, {0}},
    {"MatMul", "{transpose_b=true}", NULL, {{2, {3, 4}}, {2, {5, 4}}}, {0}},
    {"MatMul", "{transpose_a=true, transpose_b=true}", NULL, {{2, {4, 3}}, {2, {5, 4}}}, {0}},
    {"BatchMatMul", "", NULL, {{3, {2, 3, 4}}, {3, {2, 4, 5}}}, {0}},
    {"BatchMatMul", "{adj_x=true, adj_y=true}", NULL, {{3, {2, 4, 3}}, {3, {2, 5, 4}}}, {0}},
    {"BiasAdd", "", NULL, {{2, {3, 4}}, {1, {4}}}, {0}},
    {"BiasAdd", "", NULL, {{4, {2, 3, 5, 4}}, {1, {4}}}, {0}},
    {"BiasAdd", "{data_format=\"NCHW\"}", NULL, {{4, {2, 4, 3, 5}}, {1, {4}}}, {0}},
    {"BiasAddGrad", "", NULL, {{2, {3, 4}}, {0}}, {0}},
    {"BiasAddGrad", "{data_format=\"NCHW\"}", NULL, {{4, {2, 4, 3, 5}}, {0}}, {0}},
    {"Sum", "", "[1]", {{3, {2, 3, 4}}, {0}}, {0}},
    {"Sum", "{keep_dims=true}", "[-1,0]", {{3, {2, 3, 4}}, {0}}, {0}},
    {"Max", "", "[0]", {{2, {3, 4}}, {0}}, {0}},
    {"L2Loss", "", NULL, {{3, {2, 3, 4}}, {0}}, {0}},
    {"Mul", "", NULL, {{3, {2, 3, 4}}, {2, {1, 4}}}, {0, 1}},
    {"Mul", "", NULL, {{1, {3}}, {2, {3, 1}}}, {0, 1}},
    {"LRN", "", NULL, {{4, {2, 3, 5, 4}}, {0}}, {1}},
    {"Conv2D", WINDOWS, NULL, {{4, {2, 5, 6, 4}}, {4, {3, 2, 4, 6}}}, {1, 4}},
    {"Conv2D", WINDOWS, NULL, {{4, {2, 5, 6, 4}}, {4, {3, 2, 2, 6}}}, {1, 4}},
    {"Conv2D", WINDOWS, NULL, {{4, {2, 5, 6, 4}}, {4, {3, 2, 1, 4}}}, {1, 4}},
    {"LocallyConnected2D", WINDOWS, NULL, {{4, {2, 5, 6, 4}}, {6, {3, 5, 3, 2, 4, 3}}}, {1, 4}},
    {"CheckNumerics", "{message=\"no\"}", NULL, {{2, {3, 4}}, {0}}, {0}},
};

static void write_shape(struct str *text, const struct shape *shape)
{
    for (int d = 0; d < shape->rank; d++)
        str_printf(text, "%s%d", d ? "," : "", (int)shape->dims[d]);
}

/* Input `fed` is x, the other one is all the same. */
static void write_graph(struct str *text, const struct example *e, int fed)
{
    const char *const others[] = {"", e->axes ? ", axes" : e->in[1].rank ? ", other" : ""};
    str_append(text, "x = Placeholder() {dtype=float64, shape=[");
    write_shape(text, &e->in[fed]);
    str_append(text, "]}\nsize = Const() {dtype=int32, value=[");
    write_shape(text, &e->in[!fed]);
    str_printf(text,
               "]}\nvalue = Const() {dtype=float64, value=1.5}\nother = Fill(size, value)\n"
               "axes = Const() {dtype=int32, value=%s}\ny = %s(%s%s) %s\n",
               e->axes ? e->axes : "[0]", e->op, fed ? "other, " : "x", fed ? "x" : others[1],
               e->attrs);
}

/* Index along an axis of element i. */
static int64_t along(const struct shape *shape, int axis, int64_t i)
{
    int64_t steps[SHAPE_RANK_MAX];
    shape_strides(shape, steps);
    return i / steps[axis] % shape->dims[axis];
}

/* What the node makes of x: some elements, times what is at place 0 of a dimension, or elsewhere.
 */
static struct tensor run(struct fixture *f, const struct shape *shape, int dimension, double at,
                         double elsewhere)
{
    struct tensor x, y;
    assert_int_equal(tensor_alloc(&x, FLOAT64, shape, &f->err), 0);
    for (int64_t i = 0; i < tensor_count(&x); i++)
        ((double *)x.data)[i] =
            (1 + (double)(i * 7919 % 101) / 101) * (along(shape, dimension, i) ? elsewhere : at);
    if (fixture_run(f, "y", "x", &x, &y))
        fail_msg("%s", f->err.text);
    tensor_release(&x);
    return y;
}

static void check_dimension(struct fixture *f, const struct bound_rule *rule, int input,
                            const struct shape *shape, int dimension)
{
    int axis = rule_axis(rule, input, dimension), to = rule_dimension(rule, RULE_RESULT, axis);
    const char *op = rule->node->op->def->name;
    if (axis >= 0 && rule_extent(rule, axis) != shape->dims[dimension])
        fail_msg("%s: dimension %d of input %d is as long as no other of its axis", op, dimension,
                 input);
    struct tensor all = run(f, shape, dimension, 1, 1);
    struct tensor at = run(f, shape, dimension, 1, 0), others = run(f, shape, dimension, 0, 1);
    struct tensor more = run(f, shape, dimension, 3, 1);
    for (int64_t i = 0; i < tensor_count(&all); i++) {
        double y = ((double *)all.data)[i];
        double sum = ((double *)at.data)[i] + ((double *)others.data)[i];
        if (axis >= 0 && to < 0 && rule->sign == RULE_SUM && fabs(sum - y) > 1e-12 * fabs(y))
            fail_msg("%s: parts of dimension %d of input %d do not add up", op, dimension, input);
        bool changes = ((double *)more.data)[i] != y;
        if (to >= 0 && changes != !along(&all.shape, to, i))
            fail_msg("%s: dimension %d of input %d is not %d of the result", op, dimension, input,
                     to);
    }
    tensor_release(&all);
    tensor_release(&at);
    tensor_release(&others);
    tensor_release(&more);
}

/* Counts the dimensions that are an axis of the rule. */
static int check_input(const struct example *e, int input)
{
    struct str text = STR_INIT;
    struct fixture f;
    struct bound_rule rule;
    int n = 0;
    write_graph(&text, e, input);
    fixture_open(&f, str_text(&text), false);
    if (!rule_bind(f.graph, graph_find(f.graph, "y"), &rule))
        fail_msg("no rule of\n%s", str_text(&text));
    for (int d = 0; d < e->in[input].rank; d++) {
        n += rule_axis(&rule, input, d) >= 0;
        check_dimension(&f, &rule, input, &e->in[input], d);
    }
    fixture_close(&f);
    str_release(&text);
    return n;
}

static void test_results_are_made_of_what_rules_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        const struct example *e = &examples[i];
        for (int k = 0; k < INPUTS_MAX && e->in[k].rank; k++)
            assert_int_equal(check_input(e, k), e->in[k].rank - e->n_whole[k]);
    }
}

static void test_rows_follow_of_rules(void **state)
{
    static const struct {
        const char *op;
        enum op_rows rows;
    } known[] = {{"Add", ROWS_ALIKE},
                 {"AddN", ROWS_ALIKE},
                 {"Gather", ROWS_LOOKUP},
                 {"UnsortedSegmentSum", ROWS_SUM},
                 {"Unique", ROWS_DISTINCT},
                 {"Fill", ROWS_MADE},
                 {"TruncatedNormal", ROWS_MADE},
                 {"Assign", ROWS_UPDATE},
                 {"ApplyAdam", ROWS_UPDATE},
                 {"ScatterAdd", ROWS_SCATTER},
                 {"IsVariableInitialized", ROWS_ASK},
                 {"MatMul", ROWS_ANY},
                 {"BiasAdd", ROWS_ANY},
                 {"Conv2D", ROWS_ANY},
                 {"Conv2DBackpropFilter", ROWS_ANY},
                 {"CheckNumerics", ROWS_ANY},
                 {"Sum", ROWS_ANY},
                 {"All", ROWS_ANY},
                 {"L2Loss", ROWS_ANY},
                 {"Print", ROWS_ANY}};
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (registry_find(ops_registry(), known[i].op)->rows != known[i].rows)
            fail_msg("%s: other rows follow of its rule", known[i].op);
}

static bool has_axes_of(const struct rule_operand *a, const struct rule_operand *b)
{
    return a->n == b->n && a->has_format == b->has_format &&
           !memcmp(a->axes, b->axes, sizeof a->axes);
}

/* A gradient's rule is that of its op with an input and the result exchanged. */
static void test_gradients_exchange_an_input_and_the_result(void **state)
{
    static const struct {
        const char *op;
        int input;
        const char *gradient;
    } known[] = {{"BiasAdd", 1, "BiasAddGrad"},
                 {"Conv2D", 0, "Conv2DBackpropInput"},
                 {"Conv2D", 1, "Conv2DBackpropFilter"},
                 {"LocallyConnected2D", 0, "LocallyConnected2DBackpropInput"},
                 {"LocallyConnected2D", 1, "LocallyConnected2DBackpropFilter"},
                 {"MaxPool", 0, "MaxPoolGrad"},
                 {"AvgPool", 0, "AvgPoolGrad"},
                 {"LRN", 0, "LRNGrad"}};
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const struct op *op = registry_find(ops_registry(), known[i].op);
        const struct op *gradient = registry_find(ops_registry(), known[i].gradient);
        const struct rule_operand *result = rule_operand(op, RULE_RESULT);
        bool takes_result = false, fits = has_axes_of(rule_operand(gradient, RULE_RESULT),
                                                      rule_operand(op, known[i].input));
        for (int k = gradient->rule->n_results; k < gradient->rule->n; k++) {
            const struct rule_operand *operand = &gradient->rule->operands[k];
            bool is_known = operand->is_shape || has_axes_of(operand, result);
            for (int j = 0; j < op->n_inputs; j++)
                is_known |= has_axes_of(operand, rule_operand(op, j));
            takes_result |= has_axes_of(operand, result);
            fits &= is_known;
        }
        if (!fits || !takes_result)
            fail_msg("%s is no gradient of %s", known[i].gradient, known[i].op);
    }
}

static void test_wrong_rules_are_refused_by_name(void **state)
{
    static const char *const wrong[] = {
        "",
        "all",
        "y[i]",
        "y[i] a[i]",
        "y[i] =",
        "y[i] = a",
        "y[i] = a[i",
        "y[i] = a[I]",
        "y[i] = a[i],",
        "y[i] = y[i]",
        "a[i] = y[i]",
        "y[i] = a[<c>]",
        "y[i] = a[<b]",
        "y[-c] += a[...]",
        "y[i,k] = a[i,k]~u",
        "y[i,k] = a[i,k]@",
        "y[a,b,c,d,e,f,g] = a[...]",
        "y[i] = a[i] b[i] a[i] b[i] a[i] b[i] a[i]",
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const struct op_def def = {.name = "Wrong",
                                   .inputs = "a: float32, b: int32",
                                   .outputs = "y: float32",
                                   .attrs = "t: bool = false",
                                   .rule = wrong[i]};
        const struct op_def *ops[] = {&def};
        struct registry *registry = registry_new();
        struct error err = ERROR_INIT;
        if (registry_add(registry, ops, 1, &err) != ERR_INTERNAL || !strstr(err.text, "Wrong"))
            fail_msg("'%s': %s", wrong[i], err.text);
        registry_free(registry);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results_are_made_of_what_rules_say),
        cmocka_unit_test(test_rows_follow_of_rules),
        cmocka_unit_test(test_gradients_exchange_an_input_and_the_result),
        cmocka_unit_test(test_wrong_rules_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
