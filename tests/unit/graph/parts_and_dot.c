/* SPDX-License-Identifier: Apache-2.0
 *
 * Joining graphs from parts, and printing graphs as DOT.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "graph/dot.h"
#include "graph/join.h"
#include "graph/text.h"
#include "lib/test_ops.h"

static struct graph *parse(const char *text)
{
    struct graph *graph = NULL;
    struct error err = ERROR_INIT;
    if (graph_parse_text(text, strlen(text), "t", test_registry(), &graph, &err))
        fail_msg("%s", err.text);
    return graph;
}

static void entries_of_one_name_are_joined_with_all_their_edges(void **state)
{
    (void)state;
    const char *const texts[] = {"a = Const() {dtype=int32, value=1}\n"
                                 "b = Const() {dtype=int32, value=2}\n"
                                 "entry train = a, b\n",
                                 "c = Const() {dtype=int32, value=3}\n"
                                 "d = Identity(c)\n"
                                 "entry train = d, c\n"
                                 "entry eval = d\n"};
    struct graph *parts[2] = {parse(texts[0]), parse(texts[1])}, *joined = NULL;
    struct error err = ERROR_INIT;
    if (graph_join((const struct graph *const *)parts, 2, &joined, &err))
        fail_msg("%s", err.text);
    struct str text = STR_INIT;
    assert_int_equal(graph_print_text(&text, joined, NULL, &err), 0);
    assert_non_null(strstr(str_text(&text), "entry train = a, b, d, c\n"));
    assert_non_null(strstr(str_text(&text), "entry eval = d\n"));
    str_release(&text);
    graph_free(joined);

    /* Two parts with the same names. */
    assert_int_equal(
        graph_join((const struct graph *const[]){parts[0], parts[0]}, 2, &joined, &err), ERR_DATA);
    assert_string_equal(err.text, "node 'a': is in two parts");
    graph_free(parts[0]);
    graph_free(parts[1]);
}

static void scopes_are_nested_boxes_with_their_own_names(void **state)
{
    (void)state;
    struct graph *graph = parse("outer/inner/x = Const() {dtype=int32, value=1}\n"
                                "outer/y = Identity(outer/inner/x)\n"
                                "z = Identity(outer/y)\n");
    struct str dot = STR_INIT;
    graph_print_dot(&dot, graph, 0);
    const char *outer = strstr(str_text(&dot), "label=\"outer\"");
    const char *inner = strstr(str_text(&dot), "label=\"inner\"");
    assert_non_null(outer);
    assert_non_null(inner);
    assert_true(outer < inner);
    assert_null(strstr(str_text(&dot), "label=\"outer/inner\""));
    /* Boxes are closed as often as opened; nodes without a device are in an invisible box. */
    int open = 0, n_invisible = 0;
    for (const char *c = str_text(&dot); *c; c++) {
        open += (*c == '{') - (*c == '}');
        n_invisible += !strncmp(c, "style=invis label=\"\"", 20);
    }
    assert_int_equal(open, 0);
    assert_int_equal(n_invisible, 1);
    str_release(&dot);

    /* If devices differ, they are the outermost boxes, by their full names. */
    struct str placed = STR_INIT;
    graph_set_assigned(graph, graph_node(graph, 0), "/job:a/task:0/device:CPU:0");
    graph_set_assigned(graph, graph_node(graph, 1), "/job:b/task:0/device:CPU:0");
    graph_set_assigned(graph, graph_node(graph, 2), "/job:b/task:0/device:CPU:0");
    graph_print_dot(&placed, graph, 0);
    assert_non_null(strstr(str_text(&placed), "label=\"/job:a/task:0/device:CPU:0\""));
    assert_non_null(strstr(str_text(&placed), "label=\"/job:b/task:0/device:CPU:0\""));
    assert_null(strstr(str_text(&placed), "invis"));
    str_release(&placed);
    graph_free(graph);
}

static void a_literal_announces_a_known_shape(void **state)
{
    (void)state;
    const char *const texts[] = {"x = Const() {dtype=int32, value=int32[-1](1)}\n",
                                 "x = Const() {dtype=int32, value=nothing[2](1)}\n"};
    for (size_t i = 0; i < 2; i++) {
        struct graph *graph = NULL;
        struct error err = ERROR_INIT;
        assert_int_equal(
            graph_parse_text(texts[i], strlen(texts[i]), "t", test_registry(), &graph, &err),
            ERR_DATA);
        assert_non_null(strstr(err.text, "a type and a known shape"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_of_one_name_are_joined_with_all_their_edges),
        cmocka_unit_test(scopes_are_nested_boxes_with_their_own_names),
        cmocka_unit_test(a_literal_announces_a_known_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
