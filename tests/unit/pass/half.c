/* SPDX-License-Identifier: Apache-2.0
 *
 * Mixed precision: which ops use 16 bits, where casts are, and the nodes that scale a loss, rule by
 * rule.
 */
#include <stdio.h>

#include "lib/scripts.h"
#include "lib/session.h"

#include "pass/half/half.h"

struct changed {
    struct graph *graph;
    struct pass_result result;
    struct error err;
};

static int change(struct changed *c, const char *type, const char *scale, const char *keep)
{
    struct pass_options pass = {.keep = &keep, .n_keep = keep ? 1 : 0};
    struct half_options options = {.pass = &pass};
    if (half_parse(&options, type, scale, &c->err))
        fail_msg("%s", c->err.text);
    return half_rewrite(c->graph, &options, &c->result, &c->err);
}

static void parse(struct changed *c, const char *text)
{
    memset(c, 0, sizeof *c);
    if (graph_parse_text(text, strlen(text), "test", ops_registry(), &c->graph, &c->err))
        fail_msg("%s", c->err.text);
}

static void finish(struct changed *c)
{
    pass_result_release(&c->result);
    graph_free(c->graph);
}

static void check_kept(const char *keep, const char *before, const char *after)
{
    struct changed c;
    struct str text = STR_INIT;
    parse(&c, before);
    if (change(&c, "bf16", NULL, keep) || graph_check(c.result.graph, &c.err) ||
        graph_print_text(&text, c.result.graph, NULL, &c.err))
        fail_msg("%s", c.err.text);
    assert_string_equal(str_text(&text), after);
    str_release(&text);
    finish(&c);
}

static void check(const char *before, const char *after)
{
    check_kept(NULL, before, after);
}

#define X "x = Placeholder() {dtype=float32, shape=[?,4]} : float32[?,4]\n"
#define W                                                                                          \
    "w = Const() {dtype=float32, value=[[2,2,2,2],[2,2,2,2],[2,2,2,2],[2,2,2,2]]} : "              \
    "float32[4,4]\n"
#define X_HALF "x/half = Cast(x) {DstT=bfloat16, SrcT=float32} : bfloat16[?,4]\n"
#define W_HALF "w/half = Cast(w) {DstT=bfloat16, SrcT=float32} : bfloat16[4,4]\n"
#define MATMUL(name, a, b, type)                                                                   \
    name " = MatMul(" a ", " b ") {T=" type ", transpose_a=false, transpose_b=false} : " type      \
         "[?,4]\n"
#define WIDE(name, of) name " = Cast(" of ") {DstT=float32, SrcT=bfloat16} : float32[?,4]\n"

static void test_products_and_what_lies_between(void **state)
{
    (void)state;
    check(
        "graph 1\nentry e = MatMul_1\n" X W "MatMul = MatMul(x, w)\nTanh = Tanh(MatMul)\n"
        "MatMul_1 = MatMul(Tanh, w)\n",
        "graph 1\nentry e = MatMul_1\n" X W X_HALF W_HALF MATMUL(
            "MatMul", "x/half", "w/half",
            "bfloat16") "Tanh = Tanh(MatMul) {T=bfloat16} : bfloat16[?,4]\n" MATMUL("MatMul_1/half",
                                                                                    "Tanh",
                                                                                    "w/half",
                                                                                    "bfloat16")
            WIDE("MatMul_1", "MatMul_1/half"));
}

static void test_what_is_denied_refuses_what_is_inferred(void **state)
{
    (void)state;
    check("graph 1\nentry e = MatMul_1\n" X W "MatMul = MatMul(x, w)\nExp = Exp(MatMul)\n"
          "Add = Add(Exp, MatMul)\nMatMul_1 = MatMul(Add, w)\n",
          "graph 1\nentry e = MatMul_1\n" X W X_HALF W_HALF MATMUL("MatMul", "x/half", "w/half",
                                                                   "bfloat16")
              WIDE("MatMul/float32",
                   "MatMul") "Exp = Exp(MatMul/float32) {T=float32} : float32[?,4]\n"
                             "Add = Add(Exp, MatMul/float32) {T=float32} : float32[?,4]\n"
                             "Add/half = Cast(Add) {DstT=bfloat16, SrcT=float32} : "
                             "bfloat16[?,4]\n" MATMUL("MatMul_1/half", "Add/half", "w/half",
                                                      "bfloat16")
                                 WIDE("MatMul_1", "MatMul_1/half"));
}

/* Rows are cast, not the table that they are taken from. */
static void test_casts_are_where_the_fewest_bytes_are(void **state)
{
    (void)state;
    check("graph 1\nentry e = MatMul\n" X W
          "rows = Const() {dtype=int32, value=[0,0]}\nsize = Const() {dtype=int32, value=[1,4]}\n"
          "Slice = Slice(w, rows, size)\nMatMul = MatMul(x, Slice) {transpose_b=true}\n",
          "graph 1\nentry e = MatMul\n" X W "rows = Const() {dtype=int32, value=[0,0]} : int32[2]\n"
          "size = Const() {dtype=int32, value=[1,4]} : int32[2]\n"
          "Slice = Slice(w, rows, size) {Index=int32, T=float32} : float32[1,4]\n" X_HALF
          "Slice/half = Cast(Slice) {DstT=bfloat16, SrcT=float32} : bfloat16[1,4]\n"
          "MatMul/half = MatMul(x/half, Slice/half) {T=bfloat16, transpose_a=false, "
          "transpose_b=true} : bfloat16[?,1]\n"
          "MatMul = Cast(MatMul/half) {DstT=float32, SrcT=bfloat16} : float32[?,1]\n");
}

static void test_names_are_of_float32(void **state)
{
    (void)state;
    check("graph 1\nentry e = MatMul\nalias a = h\n" X W "h = Relu(x)\nMatMul = MatMul(h, w)\n",
          "graph 1\nentry e = MatMul\nalias a = h/float32\nalias h = h/float32\n" X W X_HALF
          "h/half = Relu(x/half) {T=bfloat16} : bfloat16[?,4]\n" W_HALF MATMUL(
              "MatMul/half", "h/half", "w/half",
              "bfloat16") "h/float32 = Cast(h/half) {DstT=float32, SrcT=bfloat16} : "
                          "float32[?,4]\n" WIDE("MatMul", "MatMul/half"));
}

static void test_what_may_be_fed_stays(void **state)
{
    (void)state;
    check_kept("h", "graph 1\nentry e = MatMul\n" X W "h = Relu(x)\nMatMul = MatMul(h, w)\n",
               "graph 1\nentry e = MatMul\n" X W "h = Relu(x) {T=float32} : float32[?,4]\n"
               "h/half = Cast(h) {DstT=bfloat16, SrcT=float32} : bfloat16[?,4]\n" W_HALF MATMUL(
                   "MatMul/half", "h/half", "w/half", "bfloat16") WIDE("MatMul", "MatMul/half"));
}

static void test_nothing_to_do(void **state)
{
    (void)state;
    struct changed c;
    parse(&c, "graph 1\nentry e = y\nx = Placeholder() {dtype=float64, shape=[2,2]}\n"
              "y = MatMul(x, x)\n");
    assert_int_equal(change(&c, "fp16", NULL, NULL), 0);
    assert_ptr_equal(c.result.graph, c.graph);
    finish(&c);
}

/* ---- training ---- */

static const char model[] = "x = Placeholder{dtype = float32, shape = {-1, 4}}\n"
                            "y = Placeholder{dtype = float32, shape = {-1, 1}}\n"
                            "p = nn.dense(Relu(nn.dense(x, 8, {name = 'h'})), 1, {name = 'o'})\n"
                            "loss = nn.mse(p, y)\n"
                            "entry.train = minimize(loss, optim.adam{rate = 0.01})\n";

static enum dtype type_of(const struct graph *graph, const char *name)
{
    struct edge edge;
    struct error err = ERROR_INIT;
    if (graph_parse_edge(graph, name, &edge, &err))
        fail_msg("%s", err.text);
    return graph_output(graph, edge)->type;
}

static void test_losses_gradients_and_variables_stay(void **state)
{
    (void)state;
    static const char *const wide[] = {"loss", "p", "h/W", "h/W/gradient", "h/W/adam/m", "x"};
    struct changed c = {.graph = scripts_build(model)};
    assert_int_equal(change(&c, "bf16", NULL, NULL), 0);
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        assert_int_equal(type_of(c.result.graph, wide[i]), FLOAT32);
    assert_int_equal(type_of(c.result.graph, "h/MatMul"), BFLOAT16);
    assert_int_equal(type_of(c.result.graph, "Relu"), BFLOAT16);
    for (size_t i = 0; i < c.result.graph->nodes.n; i++) {
        const struct node *node = graph_node(c.result.graph, (int)i);
        if (strstr(node->name, "loss") && node->n_outputs)
            assert_int_not_equal(node->outputs[0].type, BFLOAT16);
    }
    finish(&c);
}

static void test_scale_is_chosen(void **state)
{
    (void)state;
    static const struct {
        const char *type, *scale;
        enum half_scaling scaling;
    } all[] = {{"fp16", NULL, HALF_DYNAMIC},
               {"bf16", NULL, HALF_UNSCALED},
               {"bf16", "dynamic", HALF_DYNAMIC},
               {"fp16", "none", HALF_UNSCALED},
               {"fp16", "128", HALF_STATIC}};
    struct half_options options;
    struct error err = ERROR_INIT;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_equal(half_parse(&options, all[i].type, all[i].scale, &err), 0);
        assert_int_equal(options.scaling, all[i].scaling);
    }
    assert_int_equal(half_parse(&options, "fp8", NULL, &err), ERR_USAGE);
    assert_string_equal(err.text, "--half is bf16 or fp16, not 'fp8'");
    assert_int_equal(half_parse(&options, "fp16", "-1", &err), ERR_USAGE);
    assert_string_equal(err.text,
                        "the loss scale must be dynamic, none or a number from 1 to 16777216, "
                        "not '-1'");
}

static void test_variables_of_the_scale(void **state)
{
    (void)state;
    struct changed c = {.graph = scripts_build(model)};
    int n = graph_entry(c.graph, "init")->n_edges;
    assert_int_equal(change(&c, "fp16", NULL, NULL), 0);
    if (graph_check(c.result.graph, &c.err))
        fail_msg("%s", c.err.text);
    assert_int_equal(graph_entry(c.result.graph, "init")->n_edges, n + 3);
    assert_int_equal(type_of(c.result.graph, "loss_scale"), FLOAT32);
    assert_int_equal(type_of(c.result.graph, "loss_scale/good_steps"), INT64);
    assert_int_equal(type_of(c.result.graph, "loss_scale/skipped_steps"), INT64);
    assert_int_equal(c.result.n_changes[HALF_SCALED], 4);
    finish(&c);
}

static void test_a_name_that_is_taken(void **state)
{
    (void)state;
    char script[1024];
    snprintf(script, sizeof script, "%sentry.other = Identity(loss, {name = 'loss_scale'})\n",
             model);
    struct changed c = {.graph = scripts_build(script)};
    assert_int_equal(change(&c, "fp16", NULL, NULL), 0);
    assert_non_null(graph_find(c.result.graph, "loss_scale_1"));
    finish(&c);
}

static void test_what_cannot_be_scaled(void **state)
{
    (void)state;
    char script[1024];
    snprintf(script, sizeof script, "%sentry.again = minimize(loss * 2, optim.sgd{rate = 0.1})\n",
             model);
    struct changed c = {.graph = scripts_build(script)};
    assert_int_equal(change(&c, "fp16", NULL, NULL), ERR_DATA);
    assert_string_equal(c.err.text, "the graph trains by 2 losses, which cannot share a dynamic "
                                    "scale: give a number, or none");
    pass_result_release(&c.result);
    error_clear(&c.err);
    assert_int_equal(change(&c, "fp16", "64", NULL), 0);
    finish(&c);
    parse(&c, "graph 1\nentry train = u\nv = Variable() {dtype=float32, shape=[]}\n"
              "r = Const() {dtype=float32, value=1}\ng = Identity(r) {_gradient=\"v\"}\n"
              "u = ApplyGradientDescent(v, r, g)\n");
    assert_int_equal(change(&c, "fp16", NULL, NULL), ERR_DATA);
    assert_string_equal(c.err.text,
                        "the gradients of 'g' cannot be scaled: the gradient of the loss is not "
                        "marked, or was folded; what scales reads the graph as tf-graph wrote it");
    finish(&c);
}

/* ---- steps ---- */

static double fetch(struct fixture *f, const char *name)
{
    struct tensor value;
    if (fixture_run(f, name, NULL, NULL, &value))
        fail_msg("%s", f->err.text);
    double first = tensor_get_float64(&value, 0);
    tensor_release(&value);
    return first;
}

/* The first product's gradient is 2^15 f, and float16 ends at 65504. Holds on every device. */
static void test_steps_that_overflow(void **state)
{
    (void)state;
    static const char script[] =
        "local w = variable{name = 'w', shape = {1, 1}, init = 1}\n"
        "local f = Const({{5.0}})\n"
        "loss = Reshape(MatMul(f, w), {})\n"
        "n = global_step()\n"
        "entry.train = minimize(loss, optim.momentum{rate = 0.125}, {global_step = n, clip = 4})\n";
    struct changed c = {.graph = scripts_build(script)};
    assert_int_equal(change(&c, "fp16", NULL, NULL), 0);
    struct session_options options = {
        .plan = {.kernels = ops_kernels(), .device = fixture_device()}};
    struct fixture f = {.graph = c.result.graph, .session = session_new(c.result.graph, &options)};
    const struct entry *init = graph_entry(c.result.graph, "init");
    for (int i = 0; i < init->n_edges; i++) {
        char name[64];
        snprintf(name, sizeof name, "^%s", graph_node(c.result.graph, init->edges[i].node)->name);
        fixture_do(&f, name);
    }
    static const struct {
        double scale, w, slot, n, skipped;
    } after[] = {
        {32768, 1, 0, 0, 0}, {16384, 1, 0, 0, 1}, {8192, 1, 0, 0, 2}, {8192, 0.5, 4, 1, 2}};
    for (int i = 0; i < 4; i++) {
        if (i)
            fixture_do(&f, "^train");
        assert_true(fetch(&f, "loss_scale") == after[i].scale);
        assert_true(fetch(&f, "w") == after[i].w);
        assert_true(fetch(&f, "w/momentum") == after[i].slot);
        assert_true(fetch(&f, "global_step") == after[i].n);
        assert_true(fetch(&f, "loss_scale/skipped_steps") == after[i].skipped);
    }
    assert_true(fetch(&f, "loss_scale/good_steps") == 1);
    session_free(f.session);
    finish(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products_and_what_lies_between),
        cmocka_unit_test(test_what_is_denied_refuses_what_is_inferred),
        cmocka_unit_test(test_casts_are_where_the_fewest_bytes_are),
        cmocka_unit_test(test_names_are_of_float32),
        cmocka_unit_test(test_what_may_be_fed_stays),
        cmocka_unit_test(test_nothing_to_do),
        cmocka_unit_test(test_losses_gradients_and_variables_stay),
        cmocka_unit_test(test_scale_is_chosen),
        cmocka_unit_test(test_variables_of_the_scale),
        cmocka_unit_test(test_a_name_that_is_taken),
        cmocka_unit_test(test_what_cannot_be_scaled),
        cmocka_unit_test(test_steps_that_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
