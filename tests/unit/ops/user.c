/* SPDX-License-Identifier: Apache-2.0
 *
 * Custom ops: shared objects that are refused leave nothing behind; the ops of an accepted one are
 * inferred, differentiated and run as any other, and their mistakes are reported.
 */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "api/tf_op.h"
#include "lib/session.h"
#include "lib/unit.h"
#include "ops/user/user.h"
#include "pass/gradient/grad.h"

/* They lie beside the tests' programs. */
static const char *object(const char *name)
{
    static char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 100);
    assert_true(n > 0);
    path[n] = '\0';
    for (int up = 0; up < 3; up++)
        *strrchr(path, '/') = '\0';
    strcat(strcat(strcat(path, "/lib/"), name), ".so");
    return path;
}

static void refused(const char *name, int code, const char *why)
{
    struct error err = ERROR_INIT;
    char wanted[5000];
    const char *path = object(name);
    size_t n = registry_count(ops_registry());
    snprintf(wanted, sizeof wanted, "%s: %s", path, why);
    unit_assert_error(user_ops_load(path, &err), err, code, wanted);
    assert_int_equal(registry_count(ops_registry()), n);
    assert_null(registry_find(ops_registry(), "Fine"));
}

static void test_objects_that_are_refused(void **state)
{
    (void)state;
    refused("refused-abi", ERR_CONFIG,
            "made for version 999 of the interface for ops, not 1: compile it again");
    refused("refused-later", ERR_CONFIG, "made for a later tf-tools: compile it again");
    refused("refused-none", ERR_DATA, "its tf_ops names no ops");
    refused("refused-nothing", ERR_DATA, "not an object with ops: it exports no tf_ops");
    refused("refused-taken", ERR_DATA, "op Neg exists already");
    refused("refused-twice", ERR_DATA, "op Fine is declared twice");
    refused("refused-name", ERR_DATA, "'fine' cannot be the name of an op");
    refused("refused-malformed", ERR_DATA,
            "declaration of Odd: expected a type or a type attribute at ''");
    refused("refused-reference", ERR_DATA, "op Odd: 'x' is a reference, which is for built-in ops");
    refused("refused-flag", ERR_DATA, "op Odd has a flag that does not exist");
    refused("refused-kernel", ERR_DATA, "has a kernel of op Other, which it does not declare");
    refused("refused-empty", ERR_DATA, "its kernel of op Fine has no run function");
    refused("none", ERR_NOINPUT, "cannot be read: No such file or directory");
}

static void test_an_object_is_taken_once(void **state)
{
    struct error err = ERROR_INIT;
    size_t n = registry_count(ops_registry());
    (void)state;
    for (int i = 0; i < 2; i++)
        if (user_ops_load(object("own_ops"), &err))
            fail_msg("%s", err.text);
    assert_int_equal(registry_count(ops_registry()), n + 8);
    assert_int_equal(user_ops_load_path(object("own_ops"), &err), 0);
    assert_int_equal(registry_count(ops_registry()), n + 8);
}

#define X "x = Placeholder() {dtype=float32, shape=[]}\n"

static void test_gradients_go_through_graphs_and_other_ops(void **state)
{
    struct fixture f;
    struct gradient gradient;
    (void)state;
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        fixture_open(&f, X "s = OwnSquare(x)\ny = OwnSum(s, x, s)\n", dynamic);
        struct edge x = {graph_find(f.graph, "x")->id, 0}, y = {graph_find(f.graph, "y")->id, 0};
        if (gradients_add(f.graph, &y, NULL, 1, &x, 1, NULL, &gradient, &f.err))
            fail_msg("%s", f.err.text);
        assert_int_equal(graph_add_alias(f.graph, "dx", gradient.values, &f.err), 0);
        assert_true(fixture_get(&f, "y", 3) == 21);  /* 2 x^2 + x */
        assert_true(fixture_get(&f, "dx", 3) == 13); /* 4 x + 1 */
        fixture_close(&f);
    }
}

static void test_attributes_and_strings(void **state)
{
    struct fixture f;
    struct tensor result;
    const char *text;
    size_t n;
    (void)state;
    fixture_open(&f,
                 "w = Const() {dtype=string, value=\"word\"}\n"
                 "d = OwnDescribe(w) {i=-7, f=0.5, b=true, s=\"two words\", t=int64, p=[2,?], "
                 "l=[4,5]}\n",
                 false);
    if (fixture_run(&f, "d", NULL, NULL, &result))
        fail_msg("%s", f.err.text);
    tensor_string(&result, 0, &text, &n);
    assert_int_equal(n, strlen("word -7 0.5 1 two words 9 [-1] 4,5"));
    assert_memory_equal(text, "word -7 0.5 1 two words 9 [-1] 4,5", n);
    tensor_release(&result);
    fixture_close(&f);
}

static void test_shapes_from_values(void **state)
{
    struct fixture f;
    struct tensor result;
    (void)state;
    fixture_open(&f, "d = Const() {dtype=int32, value=[2,3]}\ny = OwnFill(d)\n", false);
    assert_string_equal(shape_text(&graph_find(f.graph, "y")->outputs[0].shape), "[2,3]");
    if (fixture_run(&f, "y", NULL, NULL, &result))
        fail_msg("%s", f.err.text);
    assert_string_equal(shape_text(&result.shape), "[2,3]");
    assert_true(tensor_get_float64(&result, 5) == 1);
    tensor_release(&result);
    fixture_close(&f);
}

static void expect_no_graph(const char *text, const char *message)
{
    struct graph *graph;
    struct error err = ERROR_INIT;
    unit_assert_error(graph_parse_text(text, strlen(text), "t", ops_registry(), &graph, &err), err,
                      ERR_DATA, message);
}

static void test_shape_functions_that_fail(void **state)
{
    (void)state;
    expect_no_graph("d = Const() {dtype=int32, value=3}\ny = OwnFill(d)\n",
                    "t:2: node 'y': OwnFill: dims of type 3 must be a vector");
    expect_no_graph("a = Const() {dtype=float32, value=[1,2]}\n"
                    "b = Const() {dtype=float32, value=[1,2,3]}\ny = OwnSum(a, b)\n",
                    "t:3: node 'y': OwnSum: x and x must have the same shape, not [2] and [3]");
    expect_no_graph("a = Const() {dtype=float32, value=[1,2]}\n"
                    "b = Const() {dtype=float32, value=[1,2,3]}\n"
                    "y = OwnScaledProduct(a, b) {factor=1.0}\n",
                    "t:3: node 'y': OwnScaledProduct: [2] and [3] cannot be broadcast together");
    expect_no_graph(X "y = OwnWrong(x) {what=10}\n",
                    "t:2: node 'y': OwnWrong: its shape function gives output 0 what is no shape");
    expect_no_graph(X "y = OwnWrong(x) {what=11}\n",
                    "t:2: node 'y': OwnWrong: its shape function sets output 1 of 1");
    expect_no_graph(X "y = OwnWrong(x) {what=12}\n",
                    "t:2: node 'y': OwnWrong: its shape function asks for inputs 0 and 3 of 1");
    expect_no_graph(X "y = OwnWrong(x) {what=13}\n",
                    "t:2: node 'y': OwnWrong: the shapes do not fit");
}

static void test_gradient_functions_that_fail(void **state)
{
    static const char *const why[] = {
        "its gradient function uses a tensor that does not exist",
        "node 'gradients/y_grad/Ngg': unknown op 'Ngg' (did you mean 'Neg'?)",
        "OwnScaledProduct: factor=two: ",
        "OwnScaledProduct has no attribute 'fctor'",
        "no gradient where what is 4",
        "its gradient function failed",
    };
    struct fixture f;
    struct gradient gradient;
    char text[200];
    (void)state;
    for (int what = 0; what < 6; what++) {
        snprintf(text, sizeof text, X "y = OwnWrong(x) {what=%d}\n", what);
        fixture_open(&f, text, false);
        struct edge x = {graph_find(f.graph, "x")->id, 0}, y = {graph_find(f.graph, "y")->id, 0};
        assert_int_not_equal(gradients_add(f.graph, &y, NULL, 1, &x, 1, NULL, &gradient, &f.err),
                             0);
        if (!strstr(f.err.text, "node 'y': gradient of OwnWrong: ") ||
            !strstr(f.err.text, why[what]))
            fail_msg("%d: %s", what, f.err.text);
        fixture_close(&f);
    }
}

static void test_kernels_that_fail(void **state)
{
    static const char *const why[] = {
        "its kernel makes no output 0",
        "output 0 is [2], but its kernel makes [3]",
        "its kernel makes an output 4 of numbers, which it does not have",
        "its kernel makes an output 0 of strings, which it does not have",
        "its kernel gives output 0 what is no shape",
        "5 is too much",
        "its kernel failed",
        "its kernel makes output 0 twice",
    };
    struct fixture f;
    char text[200], wanted[300];
    (void)state;
    for (int what = 0; what < 16; what++) {
        snprintf(text, sizeof text,
                 "x = Const() {dtype=float32, value=[1,2]}\ny = OwnWrong(x) {what=%d}\n", what % 8);
        fixture_open(&f, text, what >= 8);
        snprintf(wanted, sizeof wanted, "node 'y': OwnWrong: %s", why[what % 8]);
        struct tensor none;
        unit_assert_error(fixture_run(&f, "y", NULL, NULL, &none), f.err, ERR_DATA, wanted);
        fixture_close(&f);
    }
}

static void test_an_op_without_a_kernel(void **state)
{
    struct fixture f;
    struct tensor none;
    (void)state;
    fixture_open(&f, "x = Const() {dtype=float32, value=1}\ny = OwnUncomputed(x)\n", false);
    assert_int_equal(fixture_run(&f, "y", NULL, NULL, &none), ERR_DATA);
    assert_non_null(strstr(f.err.text, "OwnUncomputed: no CPU kernel"));
    fixture_close(&f);
}

static void test_types_choose_among_kernels(void **state)
{
    struct fixture f;
    struct tensor none;
    (void)state;
    fixture_open(&f,
                 "a = Const() {dtype=float64, value=0}\nb = Const() {dtype=int64, value=0}\n"
                 "c = Const() {dtype=int32, value=0}\n"
                 "x = OwnWhich(a)\ny = OwnWhich(b)\nz = OwnWhich(c)\n",
                 false);
    assert_true(fixture_get(&f, "x", NAN) == 1);
    assert_true(fixture_get(&f, "y", NAN) == 2);
    unit_assert_error(fixture_run(&f, "z", NULL, NULL, &none), f.err, ERR_DATA,
                      "node 'z': OwnWhich: no CPU kernel for T=int32");
    fixture_close(&f);
}

/* Compiled objects depend on this layout: whoever changes it must change TF_OP_ABI. Fields and
 * functions are added at the end. */
static void test_the_interface_stays_as_it_is(void **state)
{
    const size_t word = sizeof(void *);
    (void)state;
    assert_int_equal(TF_OP_ABI, 1);
    assert_int_equal(word, 8);
    assert_int_equal(offsetof(struct tf_ops, ops), 4 * 7 + 4);
    assert_int_equal(sizeof(struct tf_ops), 6 * word);
    assert_int_equal(offsetof(struct tf_op, flags), 5 * word);
    assert_int_equal(offsetof(struct tf_op, gradient), 7 * word);
    assert_int_equal(offsetof(struct tf_op_kernel, run), 2 * word);
    assert_int_equal(sizeof(struct tf_shape), 72);
    assert_int_equal(sizeof(struct tf_edge), 8);
    assert_int_equal(offsetof(struct tf_op_functions, infer_node), 8 * word);
    assert_int_equal(offsetof(struct tf_op_functions, grad_node), 18 * word);
    assert_int_equal(offsetof(struct tf_op_functions, kernel_node), 27 * word);
    assert_int_equal(offsetof(struct tf_op_functions, kernel_fail), 41 * word);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objects_that_are_refused),
        cmocka_unit_test(test_an_object_is_taken_once),
        cmocka_unit_test(test_gradients_go_through_graphs_and_other_ops),
        cmocka_unit_test(test_attributes_and_strings),
        cmocka_unit_test(test_shapes_from_values),
        cmocka_unit_test(test_shape_functions_that_fail),
        cmocka_unit_test(test_gradient_functions_that_fail),
        cmocka_unit_test(test_kernels_that_fail),
        cmocka_unit_test(test_an_op_without_a_kernel),
        cmocka_unit_test(test_types_choose_among_kernels),
        cmocka_unit_test(test_the_interface_stays_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
