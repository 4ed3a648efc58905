/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs of the public library.
 */
#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "ops/api/internal.h"
#include "ops/ops.h"

static atomic_bool any;

bool api_graph_exists(void)
{
    return atomic_load(&any);
}

/* Reads a graph; takes ownership of the reader. */
static tf_graph *read_tf_graph(struct stream_reader *reader, struct tf_error *error)
{
    tf_graph *graph = mem_alloc(sizeof *graph);
    struct error err = ERROR_INIT;
    atomic_store(&any, true);
    pthread_mutex_init(&graph->lock, NULL);
    graph->name = mem_strdup(stream_reader_name(reader));
    int code = stream_graph_read(reader, ops_registry(), &graph->joined, &err);
    stream_reader_free(reader);
    if (!code)
        return graph;
    api_graph_free(graph);
    api_fail(&err, error);
    return NULL;
}

tf_graph *api_graph_open(const char *file, struct tf_error *error)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        struct error err = ERROR_INIT;
        error_set_errno(&err, file_error_code(), "%s", file);
        api_fail(&err, error);
        return NULL;
    }
    tf_graph *graph = read_tf_graph(stream_reader_new(fd, file), error);
    close(fd);
    return graph;
}

tf_graph *api_graph_read(const void *bytes, size_t n, struct tf_error *error)
{
    return read_tf_graph(stream_reader_new_memory(bytes, n, "graph"), error);
}

void api_graph_free(tf_graph *graph)
{
    stream_graph_release(&graph->joined);
    pthread_mutex_destroy(&graph->lock);
    mem_free((char *)(uintptr_t)graph->name);
    mem_free(graph);
}
