/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs read from a stream of records.
 */
#include "graph/graph_io.h"

int graph_read(struct stream_reader *reader, const struct registry *registry, struct graph **graph,
               struct error *err)
{
    struct record record = {0};
    bool more;
    int code = stream_read(reader, &record, &more, err);
    if (!code && !more)
        code = error_set(err, ERR_NOINPUT, "%s: there is no graph", stream_reader_name(reader));
    else if (!code) {
        if (record.kind != RECORD_GRAPH)
            code = error_set(err, ERR_DATA, "a graph is expected, not a '%s' record",
                             record_kind_name(record.kind));
        else
            code = graph_from_record(registry, &record, graph, err);
        if (code)
            error_prefix(err, "%s: ", stream_reader_name(reader));
    }
    record_release(&record);
    return code;
}

int graph_read_whole(struct stream_reader *reader, const struct registry *registry,
                     struct graph **graph, struct error *err)
{
    struct record record = {0};
    bool more = false;
    int code = graph_read(reader, registry, graph, err);
    if (code)
        return code;
    code = stream_read(reader, &record, &more, err);
    if (!code && more)
        code = error_set(err, ERR_DATA, "%s: one graph is expected, but a '%s' record follows",
                         stream_reader_name(reader), record_kind_name(record.kind));
    if (code) {
        graph_free(*graph);
        *graph = NULL;
    }
    record_release(&record);
    return code;
}
