/* SPDX-License-Identifier: Apache-2.0
 *
 * Random graphs give the same values, bit for bit, before and after all passes. (A NaN's sign and
 * payload are not compared: hardware takes them from either operand.)
 */
#include <stdio.h>

#include "lib/session.h"

#include "exec/session/evaluate.h"
#include "lib/random_graph.h"
#include "pass/simplify/simplify.h"

#define FETCHES_MAX 64
#define SEEDS 1000

struct values {
    struct tensor tensors[FETCHES_MAX];
    int codes[FETCHES_MAX];
};

static bool is_nan(const struct tensor *t, int64_t i)
{
    double value = dtype_is_floating(t->type) ? tensor_get_float64(t, i) : 0;
    return value != value;
}

static bool same_values(const struct tensor *a, const struct tensor *b)
{
    if (a->type != b->type || !shape_equal(&a->shape, &b->shape))
        return false;
    if (!dtype_is_floating(a->type))
        return tensor_equal(a, b);
    size_t bytes = dtype_bytes(a->type);
    for (int64_t i = 0; i < tensor_count(a); i++)
        if (memcmp((const char *)a->data + (size_t)i * bytes,
                   (const char *)b->data + (size_t)i * bytes, bytes) &&
            !(is_nan(a, i) && is_nan(b, i)))
            return false;
    return true;
}

/* Fetches names one at a time, so that a failing fetch does not hide the others. */
static void fetch(const struct graph *graph, char (*names)[32], int n, const struct tensor *x,
                  struct values *values)
{
    struct session_options options = {
        .plan = {.kernels = ops_kernels(), .device = fixture_device()}};
    struct session *session = session_new(graph, &options);
    struct error err = ERROR_INIT;
    struct edge feed = EDGE_NONE;
    if (x && graph_parse_edge(graph, "x", &feed, &err))
        feed = EDGE_NONE; /* no fetch needs it */
    for (int i = 0; i < n; i++) {
        struct edge edge;
        struct step step = {.number = 1};
        error_clear(&err);
        if (graph_parse_edge(graph, names[i], &edge, &err))
            fail_msg("%s", err.text);
        struct plan_request call = {.feeds = &feed,
                                    .feed_values = x,
                                    .n_feeds = edge_exists(feed) ? 1 : 0,
                                    .fetches = &edge,
                                    .n_fetches = 1};
        values->codes[i] = session_run(session, &call, &step, &values->tensors[i], &err);
    }
    session_free(session);
}

static void print_difference(const struct graph *before, const struct graph *after,
                             const char *name, const struct tensor *a, const struct tensor *b)
{
    struct str text = STR_INIT;
    struct error err = ERROR_INIT;
    graph_print_text(&text, before, NULL, &err);
    str_append(&text, "-> ");
    graph_print_text(&text, after, NULL, &err);
    str_printf(&text, "%s: ", name);
    tensor_print(&text, a, -1);
    str_append(&text, " -> ");
    if (b)
        tensor_print(&text, b, -1);
    fail_msg("%s", str_text(&text));
}

/* Optimizes with the names as an entry, and compares. Returns how many nodes went. */
static size_t compare(struct graph *graph, char (*names)[32], int n, const struct tensor *x)
{
    struct evaluator evaluator = {.kernels = ops_kernels(), .device = fixture_device()};
    struct fold_evaluator fold = {evaluator_run, &evaluator};
    struct pass_options options = {.evaluator = &fold};
    const struct pass *passes[8];
    struct pass_result result;
    struct values before = {.codes = {0}}, after = {.codes = {0}};
    struct error err = ERROR_INIT;
    for (int i = 0; i < pass_count; i++)
        passes[i] = &pass_list[i];
    if (pass_optimize(graph, passes, pass_count, &options, &result, &err) ||
        graph_check(result.graph, &err))
        fail_msg("%s", err.text);
    fetch(graph, names, n, x, &before);
    fetch(result.graph, names, n, x, &after);
    for (int i = 0; i < n; i++) {
        if (before.codes[i]) { /* perhaps by a node that was removed */
            tensor_release(&after.tensors[i]);
            continue;
        }
        if (after.codes[i])
            print_difference(graph, result.graph, names[i], &before.tensors[i], NULL);
        if (!same_values(&before.tensors[i], &after.tensors[i]))
            print_difference(graph, result.graph, names[i], &before.tensors[i], &after.tensors[i]);
        tensor_release(&before.tensors[i]);
        tensor_release(&after.tensors[i]);
    }
    size_t gone = graph->nodes.n - result.graph->nodes.n;
    pass_result_release(&result);
    return gone;
}

/* ---- all ops, on constants ---- */

static int choose_fetches(struct graph *graph, uint64_t seed, char (*names)[32])
{
    struct random_graph r = {.state = seed};
    struct edge edges[FETCHES_MAX];
    int n = 0;
    for (int i = 0; i < 6; i++) {
        const struct node *node = graph_node(graph, random_below(&r, (int)graph->nodes.n));
        bool fetched = node->n_outputs == 0 || node->outputs[0].is_ref;
        for (int k = 0; k < n; k++)
            fetched |= edges[k].node == node->id;
        if (fetched)
            continue;
        edges[n] = (struct edge){node->id, 0};
        snprintf(names[n++], 32, "%s", node->name);
    }
    graph_add_entry(graph, "e", edges, n);
    return n;
}

static void test_all_ops(void **state)
{
    (void)state;
    char names[FETCHES_MAX][32];
    size_t gone = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct graph *graph = random_graph(ops_registry(), seed, 24, OP_STATEFUL | OP_SOURCE, true);
        int n = choose_fetches(graph, seed, names);
        if (n)
            gone += compare(graph, names, n, NULL);
        graph_free(graph);
    }
    assert_true(gone > SEEDS);
}

/* ---- patterns that the rules look for, on fed values ---- */

static const char *const numbers[] = {"0", "-0", "1", "2", "0.5", "-4", "3", "nan"};
static const char *const binary[] = {"Add", "Sub", "Mul", "Div", "Maximum", "Minimum"};
static const char *const unary[] = {"Neg", "Identity", "Exp", "Abs", "StopGradient", "Square"};
static const char *const moves[] = {
    "Transpose(%s, swap)", "Reshape(%s, flat)", "Reshape(%s, back)", "Reshape(%s, cube)",
    "Sum(%s, none)",       "Max(%s, none)",     "Tile(%s, ones)",    "Cast(%s) {DstT=float32}"};

#define HEAD                                                                                       \
    "x = Placeholder() {dtype=float32, shape=[?,4]}\n"                                             \
    "swap = Const() {dtype=int32, value=[1,0]}\nflat = Const() {dtype=int32, value=[-1]}\n"        \
    "back = Const() {dtype=int32, value=[-1,4]}\nones = Const() {dtype=int32, value=[1,1]}\n"      \
    "cube = Const() {dtype=int32, value=[2,-1,2]}\n"                                               \
    "none = Const() {dtype=int32, value=int32[0]()}\n"

static const char *pick(struct random_graph *r, const char *const *from, size_t bytes)
{
    return from[random_below(r, (int)(bytes / sizeof *from))];
}
#define PICK(r, from) pick((r), (from), sizeof(from))

/* A line that defines node `name` from some of the `n` before. */
static void random_line(struct random_graph *r, struct str *text, const char *name,
                        char (*names)[32], int n)
{
    const char *a = names[random_below(r, n)], *b = names[random_below(r, n)];
    switch (random_below(r, 5)) {
    case 0:
        str_printf(text, "%s/y = Const() {dtype=float32, value=%s}\n", name, PICK(r, numbers));
        str_printf(text, "%s = %s(%s, %s/y)\n", name, PICK(r, binary), a, name);
        return;
    case 1:
        str_printf(text, "%s = %s(%s, %s)\n", name, PICK(r, binary), a, b);
        return;
    case 2:
        str_printf(text, "%s = %s(%s)\n", name, PICK(r, unary), a);
        return;
    case 3:
        str_printf(text, "%s/y = Const() {dtype=float32, value=%s}\n", name, PICK(r, numbers));
        str_printf(text, "%s = %s(%s/y, %s)\n", name, PICK(r, binary), name, a);
        return;
    default:
        str_printf(text, "%s = ", name);
        str_printf(text, PICK(r, moves), a);
        str_append(text, "\n");
    }
}

/* Lines whose shapes do not fit are drawn again. */
static struct graph *grow(struct random_graph *r, char (*names)[32], int n)
{
    struct str text = STR_INIT;
    struct graph *graph = NULL;
    snprintf(names[0], 32, "x");
    str_append(&text, HEAD);
    for (int i = 1; i < n;) {
        struct str longer = STR_INIT;
        struct error err = ERROR_INIT;
        struct graph *next;
        snprintf(names[i], 32, "n%d", i);
        str_append(&longer, str_text(&text));
        random_line(r, &longer, names[i], names, i);
        if (!graph_parse_text(str_text(&longer), longer.n, "m", ops_registry(), &next, &err)) {
            graph_free(graph);
            graph = next;
            str_clear(&text);
            str_append(&text, str_text(&longer));
            i++;
        }
        str_release(&longer);
    }
    str_release(&text);
    return graph;
}

static void test_rules(void **state)
{
    (void)state;
    static const float data[] = {0.0f, -0.0f, 1.0f, -2.5f, 1e-40f, 3e38f, 0.1f, -1.0f / 0.0f};
    char names[FETCHES_MAX][32];
    struct shape shape = shape_matrix(2, 4);
    struct tensor x = tensor_borrow(FLOAT32, &shape, (void *)(uintptr_t)data);
    size_t gone = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct random_graph r = {.state = seed};
        struct edge edges[3];
        int n = 16;
        struct graph *graph = grow(&r, names, n);
        for (int i = 0; i < 3; i++)
            edges[i] = (struct edge){graph_find(graph, names[n - 1 - i])->id, 0};
        graph_add_entry(graph, "e", edges, 3);
        gone += compare(graph, names + n - 3, 3, &x);
        graph_free(graph);
    }
    assert_true(gone > 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_ops),
        cmocka_unit_test(test_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
