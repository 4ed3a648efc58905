/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/session/served_graph.h"

#include "base/memory.h"
#include "graph/graph_io.h"

int served_graph_take(struct served_graph *served, const struct query *query, struct error *err)
{
    const struct record *record = query->record;
    const char *cluster = record_text(&record->header, "cluster");
    if (record->n_tensors != 1 || record->tensors[0].tensor.type != UINT8)
        return error_set(err, ERR_PROTOCOL, "%s: there is no graph", query->verb);
    tensor_share(&served->stream, &record->tensors[0].tensor);
    served->cluster_text = cluster ? mem_strdup(cluster) : NULL;
    return 0;
}

int served_graph_read(struct served_graph *served, const struct registry *registry,
                      const char *what, struct error *err)
{
    struct tensor *stream = &served->stream;
    struct stream_reader *reader =
        stream_reader_new_memory(stream->data, tensor_bytes(stream), what);
    int code = graph_read_whole(reader, registry, &served->graph, err);
    stream_reader_free(reader);
    tensor_release(stream);
    return code || !served->cluster_text
               ? code
               : cluster_parse(&served->cluster, served->cluster_text, "cluster", err);
}

void served_graph_release(struct served_graph *served)
{
    tensor_release(&served->stream);
    mem_free(served->cluster_text);
    graph_free(served->graph);
    cluster_release(&served->cluster);
    *served = (struct served_graph){.graph = NULL};
}
