/* SPDX-License-Identifier: Apache-2.0
 *
 * Random graphs in mixed precision: types fit at each edge, names and entries keep their types, and
 * values equal those of float32 except for rounding.
 */
#include <math.h>
#include <stdio.h>

#include "lib/nest_script.h"
#include "lib/random_graph.h"
#include "lib/scripts.h"
#include "lib/session.h"

#include "pass/half/half.h"

#define SEEDS 300
#define GRAPHS 3000 /* few of them have an op that may use 16 bits */
#define LENGTH 24
#define ROWS 3
#define COLUMNS 4

static const enum dtype types[] = {BFLOAT16, FLOAT16};

/* ---- types ---- */

static void fail_with(const struct graph *from, const struct graph *to, const char *text)
{
    struct str all = STR_INIT;
    struct error err = ERROR_INIT;
    graph_print_text(&all, from, NULL, &err);
    str_append(&all, "->\n");
    graph_print_text(&all, to, NULL, &err);
    fail_msg("%s%s", str_text(&all), text);
}

static enum dtype type_of(const struct graph *graph, struct edge edge)
{
    return graph_output(graph, edge)->type;
}

static void check_ends(const struct graph *from, const struct graph *to)
{
    for (size_t i = 0; i < from->entries.n; i++) {
        const struct entry *was = &from->entries.items[i];
        const struct entry *is = graph_entry(to, was->name);
        assert_non_null(is);
        for (int k = 0; k < was->n_edges; k++)
            if (was->edges[k].slot != CONTROL_SLOT &&
                type_of(from, was->edges[k]) != type_of(to, is->edges[k]))
                fail_with(from, to, "an entry has another type");
    }
}

/* Reading the text infers types again, so types that do not fit are refused. */
static void check_types(const struct graph *from, struct graph *to)
{
    struct str text = STR_INIT;
    struct graph *again = NULL;
    struct error err = ERROR_INIT;
    if (graph_check(to, &err) || graph_print_text(&text, to, NULL, &err) ||
        graph_parse_text(str_text(&text), text.n, "again", ops_registry(), &again, &err))
        fail_with(from, to, err.text);
    for (size_t i = 0; i < to->nodes.n; i++) {
        const struct node *node = graph_node(to, (int)i), *same = graph_find(again, node->name);
        assert_non_null(same);
        assert_int_equal(node->n_outputs, same->n_outputs);
        for (int k = 0; k < node->n_outputs; k++)
            if (node->outputs[k].type != same->outputs[k].type)
                fail_with(from, to, node->name);
    }
    check_ends(from, to);
    graph_free(again);
    str_release(&text);
}

/* Returns how many nodes use 16 bits. */
static int rewrite(struct graph *from, enum dtype type, struct pass_result *result)
{
    static const struct pass_options none;
    struct half_options options = {.type = type, .pass = &none};
    struct error err = ERROR_INIT;
    if (half_rewrite(from, &options, result, &err))
        fail_msg("%s", err.text);
    check_types(from, result->graph);
    return result->n_changes[HALF_HALVED];
}

static void test_types_of_all_ops(void **state)
{
    (void)state;
    struct pass_result result;
    int n = 0;
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        struct graph *graph = random_graph(ops_registry(), seed, 60, 0, seed % 2);
        n += rewrite(graph, types[seed % 2], &result);
        pass_result_release(&result);
        graph_free(graph);
    }
    assert_true(n > 0);
}

/* ---- loops and conditionals, with gradients ---- */

static struct graph *nest(uint64_t seed)
{
    char *script = strdup(nest_script);
    struct script_options options = {.seed = (int64_t)seed};
    struct error err = ERROR_INIT;
    for (char *at = script; (at = strstr(at, "float64"));)
        memcpy(at, "float32", 7);
    struct graph *graph = scripts_try(script, (const char *[]){"seed=1", NULL}, &options, &err);
    if (!graph)
        fail_msg("%s", err.text);
    free(script);
    return graph;
}

static float run_nest(struct graph *graph, const char *name)
{
    static const float x = 0.3f, w[3] = {0.5f, -0.25f, 0.75f};
    struct session_options options = {
        .plan = {.kernels = ops_kernels(), .device = fixture_device()}};
    struct session *session = session_new(graph, &options);
    struct error err = ERROR_INIT;
    struct edge feeds[2], fetch;
    struct shape shape = shape_vector(3);
    struct step step = {.number = 1};
    struct tensor result, values[] = {tensor_borrow(FLOAT32, &SHAPE_SCALAR, (void *)(uintptr_t)&x),
                                      tensor_borrow(FLOAT32, &shape, (void *)(uintptr_t)w)};
    if (graph_parse_edge(graph, "x", &feeds[0], &err) ||
        graph_parse_edge(graph, "w", &feeds[1], &err) ||
        graph_parse_edge(graph, name, &fetch, &err))
        fail_msg("%s", err.text);
    struct plan_request call = {
        .feeds = feeds, .feed_values = values, .n_feeds = 2, .fetches = &fetch, .n_fetches = 1};
    if (session_run(session, &call, &step, &result, &err))
        fail_msg("%s", err.text);
    assert_int_equal(result.type, FLOAT32);
    float value = (float)tensor_get_float64(&result, 0);
    tensor_release(&result);
    session_free(session);
    return value;
}

/* Rounding may change which branch is taken, and then all later values; mostly it does not. */
static void test_nests(void **state)
{
    (void)state;
    static const char *const names[] = {"y", "gx"};
    struct pass_result result;
    int n = 0, n_near = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct graph *graph = nest(seed);
        struct edge ends[] = {{graph_find(graph, "y")->id, 0}, {graph_find(graph, "gx")->id, 0}};
        graph_add_entry(graph, "both", ends, 2);
        n += rewrite(graph, types[seed % 2], &result);
        for (int i = 0; i < 2; i++) {
            float exact = run_nest(graph, names[i]), rounded = run_nest(result.graph, names[i]);
            assert_true(isfinite(rounded));
            n_near += fabsf(exact - rounded) < 0.05f * (1 + fabsf(exact));
        }
        pass_result_release(&result);
        graph_free(graph);
    }
    assert_true(n > 100);
    if (n_near < 110)
        fail_msg("%d of 120 are near", n_near);
}

/* ---- values ---- */

#define HEAD                                                                                       \
    "n0 = Placeholder() {dtype=float32, shape=[?,4]}\n"                                            \
    "w = Const() {dtype=float32, value=[[0.5,-0.25,0.1,0.3],[0.2,0.4,-0.6,0.1],"                   \
    "[-0.3,0.7,0.2,-0.1],[0.1,0.2,0.3,0.4]]}\n"                                                    \
    "b = Const() {dtype=float32, value=[0.1,-0.2,0.3,0]}\n"                                        \
    "half = Const() {dtype=float32, value=0.5}\nzero = Const() {dtype=float32, value=0}\n"         \
    "one = Const() {dtype=int32, value=1}\nrows = Const() {dtype=int32, value=[0]}\n"              \
    "cube = Const() {dtype=int32, value=[-1,2,2]}\nflat = Const() {dtype=int32, value=[-1,4]}\n"   \
    "begin = Const() {dtype=int32, value=[0,2]}\nsize = Const() {dtype=int32, value=[-1,4]}\n"     \
    "sum = Sum(n0, all)\nall = Const() {dtype=int32, value=[0,1]}\nyes = Less(sum, zero)\n"

/* Each takes one or two earlier nodes; all are [?,4] and not much larger than these. */
static const char *const steps[] = {
    "n%d = MatMul(n%d, w)\n",
    "n%d = MatMul(n%d, w) {transpose_b=true}\n",
    "n%d = Relu(n%d)\n",
    "n%d = Tanh(n%d)\n",
    "n%d = Sigmoid(n%d)\n",
    "n%d = BiasAdd(n%d, b)\n",
    "n%d = Mul(n%d, half)\n",
    "n%d = Maximum(n%d, zero)\n",
    "n%d = Softmax(n%d)\n",
    "n%1$d/cube = Reshape(n%2$d, cube)\nn%1$d = Reshape(n%1$d/cube, flat)\n",
    "n%1$d/mean = Mean(n%2$d, one) {keep_dims=true}\nn%1$d = Sub(n%2$d, n%1$d/mean)\n",
    ("n%1$d/switch = Switch(n%2$d, yes)\nn%1$d/neg = Neg(n%1$d/switch)\n"
     "n%1$d = Merge(n%1$d/neg, n%1$d/switch:1)\n"),
    "n%1$d/sum = Add(n%2$d, n%3$d)\nn%1$d = Mul(n%1$d/sum, half)\n",
    "n%1$d/tanh = Tanh(n%2$d)\nn%1$d = Mul(n%1$d/tanh, n%3$d)\n",
    "n%1$d/both = Concat(one, n%2$d, n%3$d)\nn%1$d = Slice(n%1$d/both, begin, size)\n",
};

static struct graph *grow(struct random_graph *r, int n)
{
    struct str text = STR_INIT;
    struct error err = ERROR_INIT;
    struct graph *graph;
    str_append(&text, HEAD);
    for (int i = 1; i < n; i++) {
        int a = i - 1 - random_below(r, i < 4 ? i : 4), b = random_below(r, i);
        str_printf(&text, steps[random_below(r, sizeof steps / sizeof *steps)], i, a, b);
    }
    if (graph_parse_text(str_text(&text), text.n, "m", ops_registry(), &graph, &err))
        fail_msg("%s\n%s", str_text(&text), err.text);
    str_release(&text);
    return graph;
}

static void run(struct graph *graph, const char *name, const float *x, float *result)
{
    struct session_options options = {
        .plan = {.kernels = ops_kernels(), .device = fixture_device()}};
    struct fixture f = {.graph = graph, .session = session_new(graph, &options)};
    struct shape shape = shape_matrix(ROWS, COLUMNS);
    struct tensor value, in = tensor_borrow(FLOAT32, &shape, (void *)(uintptr_t)x);
    if (fixture_run(&f, name, "n0", &in, &value))
        fail_msg("%s", f.err.text);
    assert_int_equal(value.type, FLOAT32);
    assert_true(shape_equal(&value.shape, &shape));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        result[i] = (float)tensor_get_float64(&value, i);
    tensor_release(&value);
    session_free(f.session);
}

static void compare(struct random_graph *r, struct graph *from, struct graph *to)
{
    float x[ROWS * COLUMNS], exact[ROWS * COLUMNS], rounded[ROWS * COLUMNS], largest = 1;
    char name[16];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        x[i] = (float)random_below(r, 2000) / 1000 - 1;
    snprintf(name, sizeof name, "n%d", LENGTH - 1);
    run(from, name, x, exact);
    run(to, name, x, rounded);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        largest = fmaxf(largest, fabsf(exact[i]));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        if (!(fabsf(exact[i] - rounded[i]) < 0.03f * largest))
            fail_with(from, to, "values differ");
}

static void test_values(void **state)
{
    (void)state;
    struct pass_result result;
    int n = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct random_graph r = {.state = seed};
        struct graph *graph = grow(&r, LENGTH);
        struct edge end = {graph_find(graph, "n23")->id, 0};
        graph_add_entry(graph, "e", &end, 1);
        n += rewrite(graph, types[seed % 2], &result);
        compare(&r, graph, result.graph);
        pass_result_release(&result);
        graph_free(graph);
    }
    assert_true(n > 2 * SEEDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types_of_all_ops),
        cmocka_unit_test(test_nests),
        cmocka_unit_test(test_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
