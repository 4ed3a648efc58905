/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients that reach one tensor along several paths: nodes that add them, rows of a table with
 * whole tables, and none at all.
 */
#include <stdio.h>

#include "lib/session.h"

#include "pass/gradient/grad.h"

#define TABLE "x = Placeholder() {dtype=float32, shape=[3,2]}\n"

/* d(sum of y)/dx as a dense tensor; EDGE_NONE if there is none. */
static struct edge gradient_of(struct fixture *f, const char *text)
{
    struct edge y, x;
    struct gradient gradient;
    struct gradients_options options = {.allow_missing = true};
    fixture_open(f, text, false);
    if (graph_parse_edge(f->graph, "y", &y, &f->err) ||
        graph_parse_edge(f->graph, "x", &x, &f->err) ||
        gradients_add(f->graph, &y, NULL, 1, &x, 1, &options, &gradient, &f->err))
        fail_msg("%s", f->err.text);
    struct build b = {.graph = f->graph, .scope = "dense", .err = &f->err};
    return edge_exists(gradient.values) ? gradient_dense(&b, &gradient, x) : EDGE_NONE;
}

static void expect_gradient(struct fixture *f, struct edge fetch, const char *literal)
{
    struct edge feed;
    struct tensor value, result;
    struct step step = {.number = 1};
    struct str text = STR_INIT;
    if (!tensor_parse(&value, "[[1,2],[3,4],[5,6]]", FLOAT32, &f->err) ||
        graph_parse_edge(f->graph, "x", &feed, &f->err))
        fail_msg("%s", f->err.text);
    struct plan_request call = {
        .feeds = &feed, .feed_values = &value, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1};
    if (session_run(f->session, &call, &step, &result, &f->err))
        fail_msg("%s", f->err.text);
    tensor_print(&text, &result, -1);
    assert_string_equal(str_text(&text), literal);
    str_release(&text);
    tensor_release(&value);
    tensor_release(&result);
}

static int count_op(const struct graph *graph, const char *op, int n_inputs)
{
    int n = 0;
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const struct node *node = graph_node(graph, (int)i);
        n += node_is(node, op) && node->n_inputs == n_inputs;
    }
    return n;
}

static void what_is_used_twice_gets_one_addn_of_two(void **state)
{
    struct fixture f;
    (void)state;
    struct edge dx = gradient_of(&f, TABLE "y = Mul(x, x)\n");
    assert_int_equal(count_op(f.graph, "AddN", 2), 1);
    expect_gradient(&f, dx, "[[2,4],[6,8],[10,12]]");
    fixture_close(&f);
}

/* y = the sum of rows 2, 0, 2, once plain and once squared, and of all elements squared */
static void rows_and_whole_tables_add_up(void **state)
{
    struct fixture f;
    (void)state;
    struct edge dx = gradient_of(&f, TABLE "k = Const() {dtype=int32, value=[2,0,2]}\n"
                                           "all = Const() {dtype=int32, value=[0,1]}\n"
                                           "rows = Gather(x, k)\n"
                                           "again = Gather(x, k)\n"
                                           "squares = Square(again)\n"
                                           "a = Sum(rows, all)\n"
                                           "b = Sum(squares, all)\n"
                                           "c = Square(x)\n"
                                           "d = Sum(c, all)\n"
                                           "y = AddN(a, b, d)\n");
    expect_gradient(&f, dx, "[[5,9],[6,8],[32,38]]");
    fixture_close(&f);
}

static void what_has_no_path_gets_nothing(void **state)
{
    static const char *const ys[] = {
        "y = Const() {dtype=float32, value=1}\n",
        "s = StopGradient(x)\ny = Square(s)\n",
        "z = Const() {dtype=float32, value=0}\nb = Less(x, z)\ny = Cast(b) {DstT=float32}\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof ys / sizeof *ys; i++) {
        struct fixture f;
        char text[256];
        snprintf(text, sizeof text, TABLE "%s", ys[i]);
        assert_false(edge_exists(gradient_of(&f, text)));
        fixture_close(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_used_twice_gets_one_addn_of_two),
        cmocka_unit_test(rows_and_whole_tables_add_up),
        cmocka_unit_test(what_has_no_path_gets_nothing),
    };
    return cmocka_run_group_tests_name("sums of gradients", tests, NULL, NULL);
}
