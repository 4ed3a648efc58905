/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs: names, edges as text, binding of nodes to declarations, order, registries.
 */
#include "lib/unit.h"

#include <string.h>

#include "graph/build.h"
#include "graph/infer.h"
#include "ops/ops.h"

/* A table of one op, as a user's shared object would bring it. */
static const struct op_def op_mix = {
    .name = "Mix",
    .inputs = "first: N*T, second: N*T, rest: types...",
    .outputs = "sum: T, others: types...",
    .attrs =
        "T: float32|int32, N: int >= 1, types: list(any), "
        "mode: {\"fast\",\"slow\"} = \"fast\", weights: list(float) = [1,2.5], k: int = 3 >= 2",
    .doc = "For tests.",
    .shape = infer_output_scalar,
};
static const struct op_def op_twice = {.name = "Mix", .doc = "Taken."};
static const struct op_def op_bad = {.name = "Bad", .inputs = "x: Nothing", .doc = "Malformed."};

static struct registry *registry;
static struct graph *graph;
static struct error err;

static int setup(void **state)
{
    static const struct op_def *const own[] = {&op_mix};
    const struct registry *builtin = ops_registry();
    (void)state;
    error_clear(&err);
    registry = registry_new();
    assert_int_equal(registry_add(registry, own, 1, &err), 0);
    for (size_t i = 0; i < registry_count(builtin); i++)
        assert_int_equal(registry_add(registry, &registry_at(builtin, i)->def, 1, &err), 0);
    graph = graph_new(registry);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    graph_free(graph);
    registry_free(registry);
    return 0;
}

static struct node *constant(const char *name, enum dtype type)
{
    double element = 0;
    struct tensor t = tensor_borrow(type, &SHAPE_SCALAR, &element);
    struct attr attrs[] = {{"dtype", attr_type(type)}, {"value", attr_tensor(&t)}};
    struct node_spec spec = {.op = "Const", .name = name, .attrs = attrs, .n_attrs = 2};
    struct node *node = graph_add(graph, &spec, &err);
    assert_non_null(node);
    return node;
}

static struct node *add(const char *op, const char *name, const struct edge *inputs, int n)
{
    struct node_spec spec = {.op = op, .name = name, .inputs = inputs, .n_inputs = n};
    return graph_add(graph, &spec, &err);
}

static void registries_take_tables_from_more_than_one_source(void **state)
{
    static const struct op_def *const twice[] = {&op_twice}, *const bad[] = {&op_bad};
    (void)state;
    assert_ptr_equal(registry_find(registry, "Mix")->def, &op_mix);
    assert_non_null(registry_find(registry, "MatMul"));
    assert_null(registry_find(registry, "mix"));
    assert_string_equal(registry_nearest(registry, "MatMull"), "MatMul");
    assert_int_equal(registry_add(registry, twice, 1, &err), ERR_INTERNAL);
    assert_non_null(strstr(err.text, "Mix"));
    assert_int_equal(registry_add(registry, bad, 1, &err), ERR_INTERNAL);
    assert_non_null(strstr(err.text, "Bad"));
}

static void names_follow_the_rules(void **state)
{
    static const char *const good[] = {"a", "A9", ".x", "0", "a/b-c.d_e", "9/_"};
    static const char *const refused[] = {"", "_a", "/a", "-a", "a b", "a:0", "^a", "\xc3\xa4"};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(graph_name_valid(good[i]));
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        assert_false(graph_name_valid(refused[i]));
    constant("x", FLOAT32);
    constant("x_2", FLOAT32);
    assert_string_equal(graph_unique_name(graph, "y"), "y");
    assert_string_equal(constant(graph_unique_name(graph, "x"), FLOAT32)->name, "x_1");
    assert_string_equal(constant(graph_unique_name(graph, "x"), FLOAT32)->name, "x_3");
    assert_null(add("NoOp", "x", NULL, 0));
    assert_non_null(strstr(err.text, "'x' is taken"));
}

static void edges_parse_and_print(void **state)
{
    struct edge edge;
    struct str text = STR_INIT;
    (void)state;
    int a = constant("a", FLOAT32)->id;
    int a1 = constant("a1", BOOL)->id;
    int s = add("Switch", "s", (struct edge[]){{a, 0}, {a1, 0}}, 2)->id;
    const struct {
        const char *text, *canonical;
        struct edge edge;
    } good[] = {{"a", "a", {a, 0}},
                {"a:0", "a", {a, 0}},
                {"a1", "a1", {a1, 0}},
                {"s:1", "s:1", {s, 1}},
                {"^s", "^s", {s, CONTROL_SLOT}}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(graph_parse_edge(graph, good[i].text, &edge, &err), 0);
        assert_int_equal(edge.node, good[i].edge.node);
        assert_int_equal(edge.slot, good[i].edge.slot);
        str_clear(&text);
        graph_print_edge(&text, graph, edge);
        assert_string_equal(str_text(&text), good[i].canonical);
    }
    static const char *const refused[] = {"a:", "a:1", "^a:0", ":0", "", "b", "a:-1", "a:99999999"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        assert_int_equal(graph_parse_edge(graph, refused[i], &edge, &err), ERR_DATA);
    assert_int_equal(graph_add_alias(graph, "other", (struct edge){s, 1}, &err), 0);
    assert_int_equal(graph_parse_edge(graph, "other", &edge, &err), 0);
    assert_int_equal(edge.slot, 1);
    assert_int_equal(graph_add_alias(graph, "a", (struct edge){s, 1}, &err), ERR_DATA);
    str_release(&text);
}

static void types_and_counts_are_inferred(void **state)
{
    (void)state;
    int f = constant("f", FLOAT32)->id, g = constant("g", FLOAT32)->id;
    int b = constant("b", BOOL)->id, i = constant("i", INT64)->id;
    enum dtype types[] = {BOOL, INT64};
    struct attr attr = {"types", {.kind = ATTR_LIST_TYPE, .n = 2, .types = types}};
    struct edge inputs[] = {{f, 0}, {g, 0}, {g, 0}, {f, 0}, {b, 0}, {i, 0}};
    struct node_spec spec = {
        .op = "Mix", .inputs = inputs, .n_inputs = 6, .attrs = &attr, .n_attrs = 1};
    struct node *node = graph_add(graph, &spec, &err);
    assert_non_null(node);
    assert_int_equal(node_int(node, "N"), 2);
    assert_int_equal(node_type(node, "T"), FLOAT32);
    assert_string_equal(node_string(node, "mode"), "fast");
    assert_int_equal(node_int(node, "k"), 3);
    assert_int_equal(node_attr(node, "weights")->n, 2);
    assert_float_equal(node_attr(node, "weights")->floats[1], 2.5, 0);
    assert_int_equal(node->n_outputs, 3);
    assert_int_equal(node->outputs[0].type, FLOAT32);
    assert_int_equal(node->outputs[2].type, INT64);
}

static void what_does_not_fit_is_refused_by_name(void **state)
{
    (void)state;
    int f = constant("f", FLOAT32)->id, b = constant("b", BOOL)->id, d = constant("d", FLOAT64)->id;
    assert_null(add("Add", "sum", (struct edge[]){{f, 0}, {d, 0}}, 2));
    assert_non_null(strstr(err.text, "node 'sum': Add: "));
    assert_non_null(strstr(err.text, "float64"));
    assert_non_null(strstr(err.text, "float32"));
    assert_null(add("Add", NULL, (struct edge[]){{f, 0}}, 1));
    assert_non_null(strstr(err.text, "takes 2 inputs, not 1"));
    assert_null(add("Add", NULL, (struct edge[]){{b, 0}, {b, 0}}, 2));
    assert_non_null(strstr(err.text, "bool"));
    assert_null(add("Assign", NULL, (struct edge[]){{f, 0}, {f, 0}}, 2));
    assert_non_null(strstr(err.text, "must be a variable"));
    assert_null(add("Sqare", NULL, (struct edge[]){{f, 0}}, 1));
    assert_non_null(strstr(err.text, "did you mean 'Square'"));
    assert_null(add("Add", NULL, (struct edge[]){{f, 7}, {f, 0}}, 2));
    assert_null(add("Add", NULL, (struct edge[]){{99, 0}, {f, 0}}, 2));
    size_t n = graph->nodes.n;
    struct attr attrs[] = {
        {"k", attr_int(1)}, {"mode", attr_string("slow")}, {"types", {.kind = ATTR_LIST_TYPE}}};
    struct node_spec spec = {.op = "Mix",
                             .inputs = (struct edge[]){{f, 0}, {f, 0}},
                             .n_inputs = 2,
                             .attrs = attrs,
                             .n_attrs = 3};
    assert_null(graph_add(graph, &spec, &err));
    assert_non_null(strstr(err.text, "'k' must be at least 2"));
    attrs[0].value = attr_int(2);
    attrs[1].value = attr_string("medium");
    assert_null(graph_add(graph, &spec, &err));
    assert_non_null(strstr(err.text, "medium"));
    attrs[1] = (struct attr){"moda", attr_string("slow")};
    assert_null(graph_add(graph, &spec, &err));
    assert_non_null(strstr(err.text, "did you mean 'mode'"));
    assert_int_equal(graph->nodes.n, n);
}

static void order_puts_inputs_first_and_names_cycles(void **state)
{
    int order[4];
    (void)state;
    int a = constant("a", FLOAT32)->id;
    struct attr type = {"T", attr_type(FLOAT32)};
    struct node_spec open = {.op = "Neg",
                             .name = "neg",
                             .inputs = (struct edge[]){EDGE_NONE},
                             .n_inputs = 1,
                             .attrs = &type,
                             .n_attrs = 1};
    struct node *neg = graph_add(graph, &open, &err);
    struct node *abs = add("Abs", "abs", (struct edge[]){{neg->id, 0}}, 1);
    struct node *late = constant("late", FLOAT32);
    assert_int_equal(graph_set_input(graph, neg, 0, (struct edge){late->id, 0}, &err), 0);
    graph_add_control(graph, late, a);
    graph_add_control(graph, late, a);
    assert_int_equal(late->n_controls, 1);
    assert_int_equal(graph_order(graph, order, &err), 0);
    assert_int_equal(order[0], a);
    assert_int_equal(order[1], late->id);
    assert_int_equal(order[2], neg->id);
    assert_int_equal(order[3], abs->id);
    graph_add_control(graph, late, abs->id);
    assert_int_equal(graph_order(graph, order, &err), ERR_DATA);
    assert_non_null(strstr(err.text, "cycle"));
    assert_non_null(strstr(err.text, "abs"));
    assert_null(strstr(err.text, "'a'"));
}

static void attributes_can_be_set_within_their_constraints(void **state)
{
    (void)state;
    struct node *node = constant("x", FLOAT32);
    struct attr free_attr = {"_note", attr_string("anything")};
    assert_int_equal(graph_set_attr(graph, node, &free_attr, &err), 0);
    assert_string_equal(node_string(node, "_note"), "anything");
    struct attr unknown = {"shade", attr_int(1)};
    assert_int_equal(graph_set_attr(graph, node, &unknown, &err), ERR_DATA);
    struct attr wrong = {"dtype", attr_int(1)};
    assert_int_equal(graph_set_attr(graph, node, &wrong, &err), ERR_DATA);
    assert_non_null(strstr(err.text, "node 'x'"));
}

static void groups_name_the_node_that_leads_them(void **state)
{
    (void)state;
    const struct node *w = constant("w", FLOAT32);
    assert_ptr_equal(group_leader(graph, "loc:@w"), w);
    assert_null(group_leader(graph, "loc:@v"));
    assert_null(group_leader(graph, "w"));
    assert_null(group_leader(graph, "Loc:@w"));
    assert_string_equal(group_leader_name("loc:@a/v"), "a/v");
    assert_string_equal(group_leader_name("loc:@"), "");
    assert_null(group_leader_name("loc:"));
    assert_null(group_leader_name("in loc:@w"));
}

static void prefixes_are_free_of_nodes_and_aliases(void **state)
{
    struct arena arena = ARENA_INIT;
    (void)state;
    struct edge edge = {constant("my_tower", FLOAT32)->id, 0};
    assert_string_equal(graph_free_prefix(&arena, graph, "tower"), "tower");
    constant("towers/x", FLOAT32);
    assert_string_equal(graph_free_prefix(&arena, graph, "tower"), "tower.1");
    assert_int_equal(graph_add_alias(graph, "tower.1_0", edge, &err), 0);
    assert_string_equal(graph_free_prefix(&arena, graph, "tower"), "tower.2");
    arena_release(&arena);
}

static void constants_name_axes(void **state)
{
    struct build b = {.graph = graph, .scope = "", .device = "", .err = &err};
    unsigned axes;
    (void)state;
    struct edge list = build_ints(&b, (int64_t[]){-1, 0}, 2);
    assert_true(graph_constant_axes(graph, list, 4, &axes));
    assert_int_equal(axes, 0x9);
    assert_true(graph_constant_axes(graph, build_ints(&b, NULL, 0), 4, &axes));
    assert_int_equal(axes, 0);
    assert_false(graph_constant_axes(graph, build_ints(&b, (int64_t[]){4}, 1), 4, &axes));
    assert_false(graph_constant_axes(graph, build_unary(&b, "Shape", list), 4, &axes));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(registries_take_tables_from_more_than_one_source),
        TEST(names_follow_the_rules),
        TEST(edges_parse_and_print),
        TEST(types_and_counts_are_inferred),
        TEST(what_does_not_fit_is_refused_by_name),
        TEST(order_puts_inputs_first_and_names_cycles),
        TEST(attributes_can_be_set_within_their_constraints),
        TEST(groups_name_the_node_that_leads_them),
        TEST(prefixes_are_free_of_nodes_and_aliases),
        TEST(constants_name_axes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
