/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of each pass, one by one: a graph as text, and the nodes that are left.
 */
#include <stdio.h>

#include "lib/session.h"

#include "exec/session/evaluate.h"
#include "pass/simplify/simplify.h"

struct changed {
    struct graph *graph;
    struct pass_result result;
    struct error err;
};

static struct evaluator evaluator;
static struct fold_evaluator fold = {evaluator_run, &evaluator};

static void parse(struct changed *c, const char *text)
{
    memset(c, 0, sizeof *c);
    if (graph_parse_text(text, strlen(text), "test", ops_registry(), &c->graph, &c->err))
        fail_msg("%s", c->err.text);
}

static int optimize(struct changed *c, const char *pass, const char *keep)
{
    const struct pass *chosen[16];
    int n = 0;
    for (int i = 0; i < pass_count; i++)
        if (!pass || !strcmp(pass, pass_list[i].name))
            chosen[n++] = &pass_list[i];
    struct pass_options options = {.keep = &keep, .n_keep = keep ? 1 : 0, .evaluator = &fold};
    evaluator.kernels = ops_kernels();
    evaluator.device = fixture_device();
    return pass_optimize(c->graph, chosen, n, &options, &c->result, &c->err);
}

static void finish(struct changed *c)
{
    pass_result_release(&c->result);
    graph_free(c->graph);
}

/* Runs a pass (NULL: all) and checks the whole text that comes out. */
static void check(const char *pass, const char *keep, const char *before, const char *after)
{
    struct changed c;
    struct str text = STR_INIT;
    parse(&c, before);
    if (optimize(&c, pass, keep) || graph_check(c.result.graph, &c.err) ||
        graph_print_text(&text, c.result.graph, NULL, &c.err))
        fail_msg("%s", c.err.text);
    assert_string_equal(str_text(&text), after);
    str_release(&text);
    finish(&c);
}

/* Runs a pass and checks which of the named nodes are left. */
static void check_nodes(const char *pass, const char *before, const char *gone,
                        const char *const *stay)
{
    struct changed c;
    parse(&c, before);
    if (optimize(&c, pass, NULL) || graph_check(c.result.graph, &c.err))
        fail_msg("%s", c.err.text);
    if (gone && graph_find(c.result.graph, gone))
        fail_msg("'%s' is still there", gone);
    for (; stay && *stay; stay++)
        if (!graph_find(c.result.graph, *stay))
            fail_msg("'%s' is gone", *stay);
    finish(&c);
}

#define X "x = Placeholder() {dtype=float32, shape=[?,4]}\n"
#define N "n = Placeholder() {dtype=int32, shape=[3]}\n"
#define XN "x = Placeholder() {dtype=float32, shape=[?,4]} : float32[?,4]\n"

/* ---- prune ---- */

static void test_prune(void **state)
{
    (void)state;
    const char *graph = "entry e = b\nalias top = a:1\n" X "k = Const() {dtype=int32, value=2}\n"
                        "a = TopKV2(x, k)\nb = Neg(x)\ndead = Exp(b)\n";
    static const char *const stay[] = {"x", "k", "a", "b", NULL};
    check_nodes("prune", graph, "dead", stay);
    check("prune", "dead", "entry e = x\n" X "y = Neg(x)\ndead = Exp(y)\n",
          "graph 1\nentry e = x\n" XN "y = Neg(x) {T=float32} : float32[?,4]\n"
          "dead = Exp(y) {T=float32} : float32[?,4]\n");
}

static void test_prune_keeps_what_may_be_fetched(void **state)
{
    (void)state;
    static const char *const stay[] = {"x", "y", NULL};
    check_nodes("prune", X "y = Neg(x)\n", NULL, stay);
    check_nodes("prune",
                "entry init = ^go\nentry ready = r\n" X
                "y = Neg(x)\ngo = NoOp()\nr = Const() {dtype=bool, value=true}\n",
                NULL, stay);
    check_nodes("prune", "entry e = ^go\n" X "y = Neg(x)\ngo = NoOp(^y)\n", NULL, stay);
}

static void test_prune_keeps_the_leader_of_a_group(void **state)
{
    (void)state;
    static const char *const stay[] = {"lead", "b", NULL};
    check_nodes("prune",
                "entry e = b\n" X "lead = Neg(x) @?/device:CPU:0\n"
                "b = Exp(x) {_class=[\"loc:@lead\"]}\ndead = Abs(x)\n",
                "dead", stay);
}

/* ---- arith ---- */

/* y = EXPRESSION: whether its op goes. */
static void check_arith(const char *types, const char *expression, bool gone)
{
    char text[1024];
    static const char *const stays[] = {"y", NULL};
    snprintf(text, sizeof text, "entry e = z\n%sy = %s\nz = Abs(y)\n", types, expression);
    check_nodes("arith", text, gone ? "y" : NULL, gone ? NULL : stays);
}

#define F(value) X "c = Const() {dtype=float32, value=" value "}\n"
#define I(value) N "c = Const() {dtype=int32, value=" value "}\n"

static void test_neutral_elements(void **state)
{
    (void)state;
    check_arith(F("1"), "Mul(x, c)", true);
    check_arith(F("1"), "Mul(c, x)", true);
    check_arith(F("1.5"), "Mul(x, c)", false);
    check_arith(F("1"), "Div(x, c)", true);
    check_arith(F("1"), "Div(c, x)", false);
    check_arith(F("0"), "Sub(x, c)", true);
    check_arith(F("0"), "Sub(c, x)", false);
    check_arith(I("0"), "Add(n, c)", true);
    check_arith(I("0"), "Add(c, n)", true);
    check_arith(I("1"), "FloorDiv(n, c)", true);
    check_arith(F("1"), "FloorDiv(x, c)", false);
}

static void test_zeros_have_a_sign(void **state)
{
    (void)state;
    check_arith(F("0"), "Add(x, c)", false); /* -0 + 0 is 0 */
    check_arith(F("-0"), "Add(x, c)", true);
    check_arith(F("-0"), "Sub(x, c)", false);
}

static void test_broadcasting_counts(void **state)
{
    (void)state;
    check_arith(F("[[1,1,1,1]]"), "Mul(x, c)", true);
    check_arith(F("[[1,1,1,1],[1,1,1,1]]"), "Mul(x, c)", false); /* x may have one row */
    check_arith(F("[[[1]]]"), "Mul(x, c)", false);
    check_arith("x = Placeholder() {dtype=float32}\nc = Const() {dtype=float32, value=[1]}\n",
                "Mul(x, c)", false);
    check_arith("x = Placeholder() {dtype=float32}\nc = Const() {dtype=float32, value=1}\n",
                "Mul(x, c)", true);
}

static void test_inverses_and_identities(void **state)
{
    (void)state;
    check_arith(X "a = Neg(x)\n", "Neg(a)", true);
    check_arith(X "a = Abs(x)\n", "Neg(a)", false);
    check_arith(X "a = Abs(x)\n", "Abs(a)", true);
    check_arith(X "a = Exp(x)\n", "Exp(a)", false);
    check_arith(X, "Identity(x)", true);
    check_arith(X, "StopGradient(x)", false); /* gradients may still be added */
    check_arith(X, "Cast(x) {DstT=float32}", true);
    check_arith(X, "Cast(x) {DstT=float64}", false);
    check_arith(X, "AddN(x)", true);
    check_arith(X "c = Const() {dtype=int32, value=int32[0]()}\n", "Max(x, c)", true);
    check_arith(X "c = Const() {dtype=int32, value=int32[0]()}\n", "Sum(x, c)", false);
    check_arith(N "c = Const() {dtype=int32, value=int32[0]()}\n", "Sum(n, c)", true);
    check_arith(X "c = Const() {dtype=int32, value=[0]}\n", "Max(x, c)", false);
    check_arith(X "c = Const() {dtype=int32, value=[1,1]}\n", "Tile(x, c)", true);
    check_arith(X "c = Const() {dtype=int32, value=[1,2]}\n", "Tile(x, c)", false);
    check_arith(X "c = Const() {dtype=int32, value=[[0,0],[0,0]]}\n", "Pad(x, c)", true);
    check_arith(X "c = Const() {dtype=bool, value=[false,false]}\n", "Reverse(x, c)", true);
}

static void test_control_edges_are_respected(void **state)
{
    (void)state;
    check_arith(X "a = Exp(x)\n", "Identity(x, ^a)", false);
    check("arith", NULL, X "y = Identity(x)\nz = Abs(x, ^y)\n",
          "graph 1\nalias y = x\n" XN "z = Abs(x, ^x) {T=float32} : float32[?,4]\n");
    /* Waiting for a Switch differs from waiting for one of its outputs. */
    static const char *const stay[] = {"y", NULL};
    check_nodes("arith",
                X "p = Placeholder() {dtype=bool, shape=[]}\ns = Switch(x, p)\n"
                  "y = Identity(s:1)\nc = Const(^y) {dtype=float32, value=1}\n"
                  "z = Abs(c)\n",
                NULL, stay);
}

static void test_a_read_stays(void **state)
{
    (void)state;
    check_arith("v = Variable() {dtype=float32, shape=[2]}\n", "Identity(v)", false);
}

static void test_reciprocal(void **state)
{
    (void)state;
    check("arith", NULL, X "c = Const() {dtype=float32, value=16}\ny = Div(x, c)\n",
          "graph 1\n" XN "c = Const() {dtype=float32, value=16} : float32[]\n"
          "y/reciprocal = Const() {dtype=float32, value=0.0625} : float32[]\n"
          "y = Mul(x, y/reciprocal) {T=float32} : float32[?,4]\n");
    const char *third = X "c = Const() {dtype=float32, value=3}\ny = Div(x, c)\n";
    static const char *const stay[] = {"c", "y", NULL};
    check_nodes("arith", third, "y/reciprocal", stay);
    check_nodes("arith", X "c = Const() {dtype=float32, value=1.7014118e38}\ny = Div(x, c)\n",
                "y/reciprocal", stay); /* 2^127: the reciprocal is subnormal */
}

static void test_rearrangements(void **state)
{
    (void)state;
    check("arith", NULL,
          "x = Placeholder() {dtype=float32, shape=[2,3,4]}\n"
          "p = Const() {dtype=int32, value=[1,2,0]}\nq = Const() {dtype=int32, value=[0,2,1]}\n"
          "a = Transpose(x, p)\nb = Transpose(a, q)\n",
          "graph 1\nx = Placeholder() {dtype=float32, shape=[2,3,4]} : float32[2,3,4]\n"
          "p = Const() {dtype=int32, value=[1,2,0]} : int32[3]\n"
          "q = Const() {dtype=int32, value=[0,2,1]} : int32[3]\n"
          "a = Transpose(x, p) {T=float32, Tperm=int32} : float32[3,4,2]\n"
          "b/perm = Const() {dtype=int32, value=[1,0,2]} : int32[3]\n"
          "b = Transpose(x, b/perm) {T=float32, Tperm=int32} : float32[3,2,4]\n");
    check_arith(X "p = Const() {dtype=int32, value=[1,0]}\na = Transpose(x, p)\n",
                "Transpose(a, p)", true);
    check_arith(X "s = Const() {dtype=int32, value=[-1,2,2]}\na = Reshape(x, s)\n"
                  "t = Const() {dtype=int32, value=[-1,4]}\n",
                "Reshape(a, t)", true);
    check_arith(X "s = Placeholder() {dtype=int32, shape=[2]}\n", "Reshape(x, s)", false);
}

/* ---- fold ---- */

static void test_fold(void **state)
{
    (void)state;
    check("fold", NULL,
          "a = Const() {dtype=float32, value=[1,2]}\nb = Exp(a)\nc = Neg(b)\n" X
          "s = Shape(x)\nr = Rank(x)\n",
          "graph 1\na = Const() {dtype=float32, value=[1,2]} : float32[2]\n"
          "b = Exp(a) {T=float32} : float32[2]\nc = Neg(b) {T=float32} : float32[2]\n" XN
          "s = Shape(x) {T=float32, out_type=int32} : int32[2]\n"
          "r = Const() {dtype=int32, value=2} : int32[]\n");
}

static void test_fold_what_is_needed(void **state)
{
    (void)state;
    static const char *const stay[] = {"x", "y", "b", NULL};
    check_nodes(NULL,
                "entry e = y\na = Const() {dtype=float32, value=[1,2,3,4]}\nb = Sqrt(a)\n" X
                "y = Mul(x, b)\n",
                "a", stay);
    /* Each output of a node becomes a constant of its own. */
    static const char *const parts[] = {"y", "s/fold", "s/fold_1", NULL};
    check_nodes(NULL,
                "entry e = y\na = Const() {dtype=float32, value=[1,2,3,4]}\n"
                "axis = Const() {dtype=int32, value=0}\ns = Split(axis, a) {num_split=2}\n"
                "p = Placeholder() {dtype=float32, shape=[2]}\n"
                "m = Mul(s:1, p)\ny = Add(s, m)\n",
                "s", parts);
}

static void test_fold_leaves_alone(void **state)
{
    (void)state;
    struct changed c;
    static const char *const texts[] = {
        "entry e = y\ns = Const() {dtype=int32, value=[3]}\n" /* random */
        "y = RandomUniform(s) {dtype=float32, seed=1, seed2=2}\n",
        "entry e = y\ns = Const() {dtype=int32, value=[1000,1000]}\n" /* large */
        "v = Const() {dtype=float32, value=1}\ny = Fill(s, v)\n",
        "entry e = y\na = Const() {dtype=int32, value=[1,2]}\n" /* fails */
        "z = Const() {dtype=int32, value=0}\ny = FloorDiv(a, z)\n",
        "entry e = y\na = Const() {dtype=float32, value=1}\nw = NoOp()\n" /* waits */
        "y = Exp(a, ^w)\n",
        "entry e = y\nd = Const() {dtype=float32, value=1}\n" /* may be fed */
        "p = PlaceholderWithDefault(d) {shape=[]}\ny = Exp(p)\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        parse(&c, texts[i]);
        if (optimize(&c, NULL, NULL))
            fail_msg("%s", c.err.text);
        assert_ptr_equal(c.result.graph, c.graph); /* nothing changed at all */
        finish(&c);
    }
}

static void test_one_failure_does_not_stop_the_others(void **state)
{
    (void)state;
    struct changed c;
    parse(&c, "entry e = y, w\na = Const() {dtype=int32, value=[6,2]}\n"
              "z = Const() {dtype=int32, value=0}\nt = Const() {dtype=int32, value=2}\n"
              "y = FloorDiv(a, z)\nw = FloorDiv(a, t)\n");
    if (optimize(&c, NULL, NULL))
        fail_msg("%s", c.err.text);
    assert_true(node_is(graph_find(c.result.graph, "y"), "FloorDiv"));
    const struct node *w = graph_find(c.result.graph, "w");
    assert_true(node_is(w, "Const"));
    assert_int_equal(tensor_get_int64(node_attr(w, "value")->tensor, 0), 3);
    finish(&c);
}

static void test_shapes_under_a_condition_stay(void **state)
{
    (void)state;
    struct changed c;
    parse(&c, "entry e = m\nx = Placeholder() {dtype=float32, shape=[2,3]}\n"
              "p = Placeholder() {dtype=bool, shape=[]}\ns = Switch(x, p)\n"
              "f = Size(s)\nt = Rank(s:1)\nm = Merge(f, t)\nok = Size(x)\n");
    if (optimize(&c, "fold", NULL))
        fail_msg("%s", c.err.text);
    assert_true(node_is(graph_find(c.result.graph, "f"), "Size"));
    assert_true(node_is(graph_find(c.result.graph, "t"), "Rank"));
    assert_true(node_is(graph_find(c.result.graph, "ok"), "Const"));
    finish(&c);
}

/* ---- cse ---- */

static void test_cse(void **state)
{
    (void)state;
    check("cse", NULL,
          "entry e = y\n" X "a = Exp(x)\nExp = Exp(x)\nb = Add(a, x)\nAdd = Add(x, Exp)\n"
          "y = Mul(b, Add)\n",
          "graph 1\nremoved Exp\nremoved Add\nentry e = y\n" XN
          "a = Exp(x) {T=float32} : float32[?,4]\n"
          "b = Add(a, x) {T=float32} : float32[?,4]\n"
          "y = Mul(b, b) {T=float32} : float32[?,4]\n");
}

static void check_cse(const char *a, const char *b, bool merged)
{
    char text[1024];
    static const char *const stays[] = {"b", NULL};
    snprintf(text, sizeof text,
             "entry e = z\n" X N "w = NoOp()\nv = Variable() {dtype=float32, shape=[4]}\n"
             "a = %s\nb = %s\ny = Neg(a)\nz = Neg(b)\n",
             a, b);
    check_nodes("cse", text, merged ? "b" : NULL, merged ? NULL : stays);
}

static void test_cse_rules(void **state)
{
    (void)state;
    check_cse("Mul(x, x)", "Mul(x, x)", true);
    check_cse("Sum(x, n)", "Sum(x, n) {keep_dims=true}", false);
    check_cse("Exp(x)", "Exp(x, ^w)", false);
    check_cse("Exp(x, ^w)", "Exp(x, ^w)", true);
    check_cse("Exp(x) @?/device:CPU:0", "Exp(x)", false);
    check_cse("Identity(v)", "Identity(v)", false); /* reads of a variable */
    check_cse("RandomStandardNormal(n) {dtype=float32, seed=1, seed2=2}",
              "RandomStandardNormal(n) {dtype=float32, seed=1, seed2=2}", false);
    check_cse("Placeholder() {dtype=float32, shape=[]}", "Placeholder() {dtype=float32, shape=[]}",
              false);
    check_cse("Const() {dtype=float32, value=1}", "Const() {dtype=float32, value=1}",
              false); /* attributes differ */
}

static void test_cse_commutes_where_it_is_exact(void **state)
{
    (void)state;
    static const char *const stays[] = {"p", "q", NULL};
#define PAIR(p, q) "entry e = p, r\n" X "a = Exp(x)\np = " p "\nq = " q "\nr = Neg(q)\n"
    check_nodes("cse", PAIR("Mul(x, a)", "Mul(a, x)"), "q", NULL);
    check_nodes("cse", PAIR("Sub(x, a)", "Sub(a, x)"), NULL, stays);
    check_nodes("cse", PAIR("AddN(x, a, x)", "AddN(x, x, a)"), NULL, stays);
    check_nodes("cse", PAIR("Maximum(x, a)", "Maximum(a, x)"), NULL, stays); /* of 0 and -0 */
#undef PAIR
}

/* ---- all passes ---- */

static void test_kept_nodes_are_opaque(void **state)
{
    (void)state;
    struct changed c;
    parse(&c, "entry e = y\na = Const() {dtype=float32, value=2}\nb = Exp(a)\nc = Exp(a)\n"
              "y = Mul(b, c)\n");
    if (optimize(&c, NULL, "b"))
        fail_msg("%s", c.err.text);
    assert_true(node_is(graph_find(c.result.graph, "b"), "Exp"));
    assert_true(node_is(graph_find(c.result.graph, "c"), "Const"));
    assert_true(node_is(graph_find(c.result.graph, "y"), "Mul"));
    finish(&c);
}

static void test_keep_wants_a_name_that_exists(void **state)
{
    (void)state;
    struct changed c;
    parse(&c, "loss = Const() {dtype=float32, value=2}\n");
    assert_int_equal(optimize(&c, NULL, "los"), ERR_DATA);
    assert_string_equal(c.err.text,
                        "cannot keep 'los': there is no node 'los' (did you mean 'loss'?)");
    finish(&c);
}

static void test_loops_survive(void **state)
{
    (void)state;
    static const char *const stay[] = {"merge", "next", "exit", NULL};
    check_nodes(NULL,
                "entry e = exit\nzero = Const() {dtype=float32, value=0}\n"
                "ten = Const() {dtype=float32, value=10}\none = Const() {dtype=float32, value=1}\n"
                "i = Enter(zero) {frame_name=\"w\"}\n"
                "n = Enter(ten) {frame_name=\"w\", is_constant=true}\n"
                "o = Enter(one) {frame_name=\"w\", is_constant=true}\n"
                "merge = Merge(i, next)\nless = Less(merge, n)\nc = LoopCond(less)\n"
                "s = Switch(merge, c)\nb = Add(s:1, o)\nb2 = Identity(b)\n"
                "next = NextIteration(b2)\nexit = Exit(s)\n",
                "b2", stay);
}

static void test_idempotent(void **state)
{
    (void)state;
    struct changed once, twice;
    parse(&once, "entry e = y\n" X "c = Const() {dtype=float32, value=4}\nd = Div(x, c)\n"
                 "h = Identity(d)\ni = Exp(h)\nExp = Exp(d)\ny = Add(i, Exp)\n");
    if (optimize(&once, NULL, NULL))
        fail_msg("%s", once.err.text);
    memset(&twice, 0, sizeof twice);
    twice.graph = once.result.graph;
    if (optimize(&twice, NULL, NULL))
        fail_msg("%s", twice.err.text);
    assert_true(once.result.graphs.n > 0);
    assert_int_equal(twice.result.graphs.n, 0);
    pass_result_release(&twice.result);
    finish(&once);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prune),
        cmocka_unit_test(test_prune_keeps_what_may_be_fetched),
        cmocka_unit_test(test_prune_keeps_the_leader_of_a_group),
        cmocka_unit_test(test_neutral_elements),
        cmocka_unit_test(test_zeros_have_a_sign),
        cmocka_unit_test(test_broadcasting_counts),
        cmocka_unit_test(test_inverses_and_identities),
        cmocka_unit_test(test_control_edges_are_respected),
        cmocka_unit_test(test_a_read_stays),
        cmocka_unit_test(test_reciprocal),
        cmocka_unit_test(test_rearrangements),
        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_fold_what_is_needed),
        cmocka_unit_test(test_fold_leaves_alone),
        cmocka_unit_test(test_one_failure_does_not_stop_the_others),
        cmocka_unit_test(test_shapes_under_a_condition_stay),
        cmocka_unit_test(test_cse),
        cmocka_unit_test(test_cse_rules),
        cmocka_unit_test(test_cse_commutes_where_it_is_exact),
        cmocka_unit_test(test_kept_nodes_are_opaque),
        cmocka_unit_test(test_keep_wants_a_name_that_exists),
        cmocka_unit_test(test_loops_survive),
        cmocka_unit_test(test_idempotent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
