/* SPDX-License-Identifier: Apache-2.0
 *
 * Properties of all graphs, tested on random graphs of all ops: text and records lose nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "graph/graph_io.h"
#include "graph/text.h"
#include "lib/random_graph.h"
#include "ops/ops.h"

#define N_GRAPHS 1000

static void print(struct str *out, const struct graph *graph)
{
    struct error err = ERROR_INIT;
    str_clear(out);
    if (graph_print_text(out, graph, NULL, &err))
        fail_msg("%s", err.text);
}

/* Compares node by node, by name, as lines may not be in the order of ids. */
static void assert_same_graph(const struct graph *a, const struct graph *b)
{
    struct str x = STR_INIT, y = STR_INIT;
    assert_int_equal(a->nodes.n, b->nodes.n);
    for (size_t i = 0; i < a->nodes.n; i++) {
        const struct node *m = graph_node(a, (int)i), *n = graph_find(b, m->name);
        assert_non_null(n);
        assert_string_equal(m->op->def->name, n->op->def->name);
        assert_string_equal(m->device, n->device);
        assert_string_equal(m->assigned, n->assigned);
        assert_int_equal(m->n_inputs, n->n_inputs);
        assert_int_equal(m->n_controls, n->n_controls);
        assert_int_equal(m->n_attrs, n->n_attrs);
        assert_int_equal(m->n_outputs, n->n_outputs);
        for (int k = 0; k < m->n_attrs; k++)
            if (!attr_equal(&m->attrs[k].value, &n->attrs[k].value))
                fail_msg("attribute '%s' of %s differs", m->attrs[k].name, m->name);
        for (int k = 0; k < m->n_outputs; k++) {
            assert_int_equal(m->outputs[k].type, n->outputs[k].type);
            assert_true(shape_equal(&m->outputs[k].shape, &n->outputs[k].shape));
        }
        for (int k = 0; k < m->n_inputs; k++) {
            str_clear(&x);
            str_clear(&y);
            graph_print_edge(&x, a, m->inputs[k]);
            graph_print_edge(&y, b, n->inputs[k]);
            assert_string_equal(str_text(&x), str_text(&y));
        }
    }
    str_release(&x);
    str_release(&y);
}

static struct graph *from_text(const struct str *text)
{
    struct error err = ERROR_INIT;
    struct graph *graph;
    if (graph_parse_text(str_text(text), text->n, "t", ops_registry(), &graph, &err))
        fail_msg("%s in\n%s", err.text, str_text(text));
    return graph;
}

static void test_text_keeps_everything(void **state)
{
    struct str first = STR_INIT, second = STR_INIT;
    (void)state;
    for (int seed = 0; seed < N_GRAPHS; seed++) {
        struct graph *graph = random_graph(ops_registry(), (uint64_t)seed, 1 + seed % 40, 0, false);
        print(&first, graph);
        struct graph *again = from_text(&first);
        print(&second, again);
        assert_string_equal(str_text(&first), str_text(&second));
        assert_same_graph(graph, again);
        graph_free(graph);
        graph_free(again);
    }
    str_release(&first);
    str_release(&second);
}

static void test_records_keep_everything(void **state)
{
    struct error err = ERROR_INIT;
    struct str first = STR_INIT, second = STR_INIT;
    struct stream_writer *writer = stream_writer_new_memory("test", -1);
    (void)state;
    for (int seed = 0; seed < N_GRAPHS; seed++) {
        struct graph *graph = random_graph(ops_registry(), (uint64_t)seed, 1 + seed % 40, 0, false);
        if (graph_write(writer, graph, &err))
            fail_msg("%s", err.text);
        graph_free(graph);
    }
    size_t n;
    assert_int_equal(stream_finish(writer, &err), 0);
    const void *bytes = stream_writer_bytes(writer, &n);
    struct stream_reader *reader = stream_reader_new_memory(bytes, n, "memory");
    for (int seed = 0; seed < N_GRAPHS; seed++) {
        struct graph *graph = random_graph(ops_registry(), (uint64_t)seed, 1 + seed % 40, 0, false);
        struct graph *again;
        if (graph_read(reader, ops_registry(), &again, &err))
            fail_msg("%s", err.text);
        print(&first, graph);
        print(&second, again);
        assert_string_equal(str_text(&first), str_text(&second));
        assert_same_graph(graph, again);
        graph_free(graph);
        graph_free(again);
    }
    stream_reader_free(reader);
    stream_writer_free(writer);
    str_release(&first);
    str_release(&second);
}

/* The random graphs contain most ops. */
static void test_most_ops_occur(void **state)
{
    struct map seen = MAP_INIT;
    size_t wanted = 0;
    (void)state;
    struct graph *graph = random_graph(ops_registry(), 7, 12000, 0, true);
    for (size_t i = 0; i < graph->nodes.n; i++)
        map_put(&seen, graph_node(graph, (int)i)->op->def->name, 1);
    for (size_t i = 0; i < registry_count(ops_registry()); i++)
        wanted += !(registry_at(ops_registry(), i)->def->flags & OP_CONTROL_FLOW);
    print_message("%zu of %zu ops\n", seen.n, wanted);
    assert_true(seen.n * 10 >= wanted * 7);
    map_release(&seen);
    graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_most_ops_occur),
        cmocka_unit_test(test_text_keeps_everything),
        cmocka_unit_test(test_records_keep_everything),
    };
    return cmocka_run_group_tests_name("random_graph", tests, NULL, NULL);
}
