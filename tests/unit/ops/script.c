/* SPDX-License-Identifier: Apache-2.0
 *
 * The language: names, constants, attributes, scopes, entries, and the errors of wrong scripts.
 */
#include "lib/scripts.h"

static const char *input_name(const struct graph *graph, const struct node *node, int i)
{
    return graph_node(graph, node->inputs[i].node)->name;
}

static const struct node *find(const struct graph *graph, const char *name)
{
    const struct node *node = graph_find(graph, name);
    if (!node)
        fail_msg("there is no node '%s'", name);
    return node;
}

static void globals_are_names(void **state)
{
    (void)state;
    struct graph *g = scripts_build("x = Placeholder{dtype = float32, shape = {-1, 4}}\n"
                                    "local hidden = x / 16\n"
                                    "h = Neg(hidden)\n"
                                    "given = Neg(h, {name = 'own'})\n"
                                    "same = h\n");
    assert_true(node_is(find(g, "x"), "Placeholder"));
    assert_true(node_is(find(g, "Div"), "Div"));
    assert_true(node_is(find(g, "Div/y"), "Const"));
    assert_int_equal(find(g, "h")->line, 3);
    assert_true(node_is(find(g, "own"), "Neg"));
    assert_null(graph_find(g, "given"));
    struct edge edge;
    struct error err = ERROR_INIT;
    assert_int_equal(graph_parse_edge(g, "given", &edge, &err), 0);
    assert_int_equal(edge.node, find(g, "own")->id);
    assert_int_equal(graph_parse_edge(g, "same", &edge, &err), 0);
    assert_int_equal(edge.node, find(g, "h")->id);
    graph_free(g);
}

static void a_global_that_is_assigned_again_names_the_last(void **state)
{
    (void)state;
    struct graph *g = scripts_build("x = Const(1.0)\n"
                                    "for i = 1, 3 do x = Neg(x) end\n"
                                    "assert(x.name == 'x')");
    const struct node *last = find(g, "x");
    assert_true(node_is(last, "Neg"));
    assert_string_equal(input_name(g, last, 0), "x_3");
    assert_string_equal(input_name(g, find(g, "x_3"), 0), "x_2");
    assert_true(node_is(find(g, "x_1"), "Const"));
    graph_free(g);
    scripts_refused("x = Placeholder{dtype = float32}\nx = x / 16",
                    "m.lua:2: the name 'x' is taken by node 'x' (m.lua:1); call this global "
                    "otherwise, or make it local");
}

static void numbers_take_the_type_of_the_tensor(void **state)
{
    (void)state;
    struct graph *g = scripts_build("local d = Placeholder{dtype = float64}\n"
                                    "local i = Placeholder{dtype = int64}\n"
                                    "a = 2 * d\n"
                                    "b = i + 7\n"
                                    "c = Add(1, 2.5)\n"
                                    "s = Sqrt(4)\n"
                                    "p = -d ^ 2\n");
    assert_int_equal(find(g, "a")->outputs[0].type, FLOAT64);
    assert_int_equal(find(g, "b")->outputs[0].type, INT64);
    assert_int_equal(tensor_get_int64(node_attr(find(g, "b/y"), "value")->tensor, 0), 7);
    assert_int_equal(find(g, "c")->outputs[0].type, FLOAT32);
    assert_int_equal(find(g, "s")->outputs[0].type, FLOAT32);
    assert_true(node_is(find(g, "p"), "Neg"));
    assert_int_equal(find(g, "Pow")->outputs[0].type, FLOAT64);
    graph_free(g);
}

static void lists_are_constants_of_any_rank(void **state)
{
    (void)state;
    struct graph *g = scripts_build("a = Const{{1, 2, 3}, {4, 5, 6}}\n"
                                    "b = Const({1, 2.5}, {dtype = float64, name = 'b'})\n"
                                    "c = Const{value = {true, false}, dtype = bool}\n"
                                    "d = Const{'ab', ''}\n"
                                    "e = Const({}, {dtype = float32})\n"
                                    "f = Const(5000000000)\n"
                                    "h = Const({{}, {}}, {dtype = int32})");
    const struct tensor *a = node_attr(find(g, "a"), "value")->tensor;
    assert_int_equal(a->type, INT32);
    assert_int_equal(a->shape.rank, 2);
    assert_int_equal(tensor_get_int64(a, 5), 6);
    assert_int_equal(find(g, "b")->outputs[0].type, FLOAT64);
    assert_int_equal(find(g, "c")->outputs[0].type, BOOL);
    const char *text;
    size_t n;
    tensor_string(node_attr(find(g, "d"), "value")->tensor, 0, &text, &n);
    assert_int_equal(n, 2);
    assert_memory_equal(text, "ab", 2);
    assert_int_equal(find(g, "e")->outputs[0].shape.dims[0], 0);
    assert_int_equal(find(g, "f")->outputs[0].type, INT64);
    assert_int_equal(find(g, "h")->outputs[0].shape.dims[1], 0);
    graph_free(g);
}

static void scopes_devices_and_controls_apply(void **state)
{
    (void)state;
    struct graph *g = scripts_build(
        "local a = NoOp{name = 'a'}\n"
        "local c = Const(1.0, {name = 'c'})\n"
        "for i = 1, 2 do\n"
        "  scope('s', function() device('/job:ps', function() device('/device:CPU:1', function()\n"
        "    control({a}, function() Neg(c) end)\n"
        "  end) end) end)\n"
        "end\n"
        "colocate(c, function() Neg(c, {name = 'near'}) end)\n"
        "c2 = Neg(c, {control = {a}, device = '/device:CPU:0'})\n"
        "c = c");
    assert_string_equal(find(g, "s/Neg")->device, "/job:ps/device:CPU:1");
    assert_int_equal(find(g, "s/Neg")->n_controls, 1);
    assert_int_equal(find(g, "s/Neg")->controls[0], find(g, "a")->id);
    assert_true(node_is(find(g, "s_1/Neg"), "Neg"));
    const struct attr_value *group = node_attr(find(g, "near"), "_class");
    assert_string_equal(group->strings[0], "loc:@c");
    assert_int_equal(find(g, "c2")->n_controls, 1);
    assert_string_equal(find(g, "c2")->device, "/device:CPU:0");
    graph_free(g);
}

static void what_was_in_force_is_restored_after_a_failure(void **state)
{
    (void)state;
    struct graph *g = scripts_build(
        "pcall(scope, 's', function() control({NoOp()}, function() error('x') end) end)\n"
        "local n = Neg(Const(1.0))\n"
        "assert(n.name == 'Neg')");
    assert_int_equal(find(g, "Neg")->n_controls, 0);
    graph_free(g);
}

static void variables_have_read_assign_and_entries(void **state)
{
    (void)state;
    struct graph *g = scripts_build(
        "w = variable{init = {1.0, 2.0}}\n"
        "scope('layer', function() variable{name = 'b', init = {3.0}, trainable = false} end)\n"
        "y = w * 2\n"
        "entry.bump = AssignAdd(w, {1.0, 1.0})\n"
        "assert(#trainable() == 1 and trainable()[1].name == 'w' and #variables() == 2)\n"
        "assert(slot(w, 'm').name == 'w/m' and w.initial.dtype == float32)");
    assert_true(node_is(find(g, "w"), "Variable"));
    assert_true(node_is(find(g, "w/Assign"), "Assign"));
    assert_string_equal(input_name(g, find(g, "y"), 0), "w/read");
    assert_string_equal(input_name(g, find(g, "AssignAdd"), 0), "w");
    assert_string_equal(node_attr(find(g, "w/read"), "_class")->strings[0], "loc:@w");
    assert_null(node_attr(find(g, "w"), "_trainable"));
    assert_false(node_attr(find(g, "layer/b"), "_trainable")->b);
    assert_string_equal(node_attr(find(g, "w/m"), "_class")->strings[0], "loc:@w");
    const struct entry *init = graph_entry(g, "init"), *ready = graph_entry(g, "ready");
    assert_int_equal(init->n_edges, 3);
    assert_int_equal(init->edges[0].node, find(g, "w/Assign")->id);
    assert_int_equal(init->edges[0].slot, CONTROL_SLOT);
    assert_int_equal(ready->n_edges, 1);
    assert_int_equal(graph_node(g, ready->edges[0].node)->outputs[0].type, BOOL);
    assert_int_equal(graph_entry(g, "bump")->edges[0].slot, 0);
    graph_free(g);
    scripts_refused("a = variable{init = {1.0}}\nb = variable{init = a * 2}",
                    "node 'b' (m.lua:2): its initial value reads the variable 'a', which may not "
                    "have one yet; use the field initial of 'a'");
    graph_free(scripts_build("a = variable{init = {1.0}}\nb = variable{init = a.initial * 2}"));
}

/* More edges than nodes: a traversal of the graph has room for each node, and no more. */
static void many_edges_between_few_nodes_are_gone_through(void **state)
{
    (void)state;
    struct graph *g = scripts_build("local one, list = Const(1.0), {}\n"
                                    "for i = 1, 200000 do list[i] = one end\n"
                                    "w = variable{shape = {}, init = AddN(list)}\n"
                                    "y = w + 1");
    assert_int_equal(find(g, "w/Assign")->n_inputs, 2);
    graph_free(g);
}

/* Each x is a variable that is read again by itself: the work is xs times reads. */
static void gradients_take_a_variable_many_times(void **state)
{
    (void)state;
    struct graph *g = scripts_build(
        "w = variable{shape = {}, init = 1.0}\n"
        "local reads, xs, ys = {}, {}, {}\n"
        "for i = 1, 150 do reads[i] = control({NoOp()}, function() return w + 0 end) end\n"
        "for i = 1, 150 do xs[i] = w end\n"
        "local sum = AddN(reads)\n"
        "for i = 1, 1000 do ys[i] = sum end\n"
        "local gs = gradients(ys, xs)\n"
        "entry.all = gs");
    assert_int_equal(graph_entry(g, "all")->n_edges, 150);
    graph_free(g);
}

static void shared_functions_use_their_variables_again(void **state)
{
    (void)state;
    struct graph *g =
        scripts_build("local x = Placeholder{dtype = float32, shape = {-1, 3}}\n"
                      "local net = share(function(bias)\n"
                      "  local w = variable{name = 'w', init = {{1.0}, {2.0}, {3.0}}}\n"
                      "  return MatMul(x, w) + bias\n"
                      "end)\n"
                      "a = net(1)\n"
                      "b = net(2)\n"
                      "assert(#variables() == 1)");
    assert_string_equal(input_name(g, find(g, "MatMul_1"), 1), "w/read");
    graph_free(g);
}

static void parameters_have_the_type_of_their_form(void **state)
{
    (void)state;
    const char *const parameters[] = {"units=256", "rate=0.5", "flag=true", "name=abc", NULL};
    struct error err = ERROR_INIT;
    struct graph *g = scripts_try("assert(D.units == 256 and math.type(D.units) == 'integer')\n"
                                  "assert(D.rate == 0.5 and D.flag == true and D.name == 'abc')\n"
                                  "assert(D.other == nil)",
                                  parameters, NULL, &err);
    assert_non_null(g);
    graph_free(g);
    assert_null(scripts_try("local a = D.unit", parameters, NULL, &err));
    unit_assert_error(err.code, err, ERR_USAGE,
                      "-D units: the script does not look at D.units; did you mean 'unit'?");
    const char *const wrong[] = {"=3", NULL}, *const twice[] = {"u=1", "u=2", NULL};
    assert_null(scripts_try("", wrong, NULL, &err));
    assert_int_equal(err.code, ERR_USAGE);
    assert_null(scripts_try("local a = D.u", twice, NULL, &err));
    unit_assert_error(err.code, err, ERR_USAGE, "-D u is given twice: 1 and 2");
}

static void errors_name_the_line_and_the_op(void **state)
{
    (void)state;
    scripts_refused("local x = Placeholder{dtype = float32, shape = {-1, 3}}\n"
                    "scope('out', function()\n"
                    "  MatMul(x, x)\n"
                    "  MatMul(x, Const{{1.0, 2.0}, {3.0, 4.0}})\n"
                    "end)",
                    "m.lua:4: node 'out/MatMul_1': MatMul: inner dimensions 3 and 2 differ: "
                    "float32[?,3] x float32[2,2]");
    scripts_refused("Relux(1)", "m.lua:1: the global 'Relux' was never set; did you mean 'Relu'?");
    scripts_refused("MatMul(Const{{1.0}}, Const{{1.0}}, {transpose_c = true})",
                    "m.lua:1: MatMul has no attribute 'transpose_c'; did you mean 'transpose_a'?");
    scripts_refused("MatMul(Const{{1.0}})", "m.lua:1: MatMul takes 2 inputs (a, b) and a table of "
                                            "attributes, not 1 argument");
    scripts_refused("MatMul(Const{{1.0}}, nil)",
                    "m.lua:1: MatMul: input 'b' is nil, not a tensor, a number or a list");
    scripts_refused("Neg(Const{{1, 2}, {3}})",
                    "m.lua:1: Const: the lists of one level must have the same length");
    scripts_refused("local x = Const(1)\nlocal y = x + 0.5",
                    "m.lua:2: Add: input 'y': 0.5 is not a value of int32");
    scripts_refused("Const(1, {name = 'a'}) Const(2, {name = 'a'})",
                    "m.lua:1: the name 'a' is taken");
    scripts_refused("local x = Const(1) < Const(2)",
                    "m.lua:1: tensors are compared by Less, LessEqual, Greater, GreaterEqual and "
                    "Equal: an operator of Lua cannot return a tensor");
    scripts_refused("x = (", "m.lua:1: unexpected symbol near <eof>");
    scripts_refused("error{}", "m.lua:1: error: a table");
    scripts_refused("Const(1).shap = 2", "m.lua:1: a tensor's fields cannot be set");
    scripts_refused("print(Const(1).shap)",
                    "m.lua:1: a tensor has no field 'shap'; did you mean 'shape'?");
}

static void errors_in_the_prelude_name_the_users_line(void **state)
{
    (void)state;
    scripts_refused("\nnn.dense(Const{1.0}, 3)",
                    "m.lua:2: nn.dense: tensor 'Const' float32[1] must have rank 2");
    scripts_refused("\n\nnn.dense(nil, 3)", "m.lua:3: nn.dense: the input is nil, not a tensor");
    scripts_refused("variable{shap = {1}}", "m.lua:1: variable has no option 'shap' (it has: "
                                            "shape, dtype, init, name, trainable, partitions, "
                                            "partition_axis); "
                                            "did you mean 'shape'?");
}

static void seeds_follow_the_final_names(void **state)
{
    (void)state;
    const struct script_options options = {.seed = 5};
    struct error err = ERROR_INIT;
    struct graph *g =
        scripts_try("r = RandomUniform({2, 3}, {dtype = float32})\n"
                    "RandomUniform({2}, {dtype = float32, name = 's', seed = 9, seed2 = 1})",
                    NULL, &options, &err);
    if (!g)
        fail_msg("%s", err.text);
    assert_int_equal(node_int(find(g, "r"), "seed"), 5);
    assert_int_equal(node_int(find(g, "r"), "seed2"), (int64_t)(hash_text("r") >> 1));
    assert_int_equal(node_int(find(g, "s"), "seed"), 9);
    assert_int_equal(node_int(find(g, "s"), "seed2"), 1);
    graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(globals_are_names),
        cmocka_unit_test(a_global_that_is_assigned_again_names_the_last),
        cmocka_unit_test(numbers_take_the_type_of_the_tensor),
        cmocka_unit_test(lists_are_constants_of_any_rank),
        cmocka_unit_test(scopes_devices_and_controls_apply),
        cmocka_unit_test(what_was_in_force_is_restored_after_a_failure),
        cmocka_unit_test(variables_have_read_assign_and_entries),
        cmocka_unit_test(shared_functions_use_their_variables_again),
        cmocka_unit_test(parameters_have_the_type_of_their_form),
        cmocka_unit_test(errors_name_the_line_and_the_op),
        cmocka_unit_test(errors_in_the_prelude_name_the_users_line),
        cmocka_unit_test(seeds_follow_the_final_names),
        cmocka_unit_test(many_edges_between_few_nodes_are_gone_through),
        cmocka_unit_test(gradients_take_a_variable_many_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
