/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: a graph that takes a while to read.
 */
#ifndef TF_TESTS_LIB_CHAIN_H
#define TF_TESTS_LIB_CHAIN_H

#include "graph/graph_io.h"
#include "lib/cluster.h"

/* Makes a chain of n nodes on ps:0 after a NaN, which ends the first step of the only entry,
 * `update`. */
static inline struct graph *chain_new(int n)
{
    struct error err = ERROR_INIT;
    struct str text = STR_INIT;
    struct graph *graph;
    str_printf(&text, "%s", "x = Const() {dtype=float32, value=inf}" ON("ps/task:0"));
    str_printf(&text, "%s", "n0 = CheckNumerics(x) {message=\"meant to fail\"}" ON("ps/task:0"));
    for (int i = 1; i < n; i++)
        str_printf(&text, "n%d = Neg(n%d)%s", i, i - 1, ON("ps/task:0"));
    if (graph_parse_text(str_text(&text), text.n, "chain", ops_registry(), &graph, &err))
        fail_msg("%s", err.text);
    str_release(&text);
    graph_add_entry(graph, "update", &(struct edge){graph_find(graph, "n0")->id, 0}, 1);
    return graph;
}

/* Gives the graph as the bytes of a stream, which the returned writer owns. */
static inline struct stream_writer *chain_write(const struct graph *graph,
                                                struct named_tensor *bytes)
{
    struct error err = ERROR_INIT;
    struct stream_writer *writer = stream_writer_new_memory("test", 1);
    size_t n;
    if (graph_write(writer, graph, &err) || stream_finish(writer, &err))
        fail_msg("%s", err.text);
    const void *data = stream_writer_bytes(writer, &n);
    struct shape shape = shape_vector((int64_t)n);
    *bytes = (struct named_tensor){"graph", tensor_borrow(UINT8, &shape, (void *)(uintptr_t)data)};
    return writer;
}

#endif
