/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker's side of update_loop.h.
 */
#include <string.h>

#include "graph/graph_io.h"
#include "graph/task.h"
#include "transport/session/worker.h"
#include "transport/session/worker_private.h"

/* One that is not of the worker's own step. */
static const struct node *find_round(const struct graph *graph)
{
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const struct node *node = graph_node(graph, (int)i);
        if (node_round(node) == ROUND_BEGIN && *node_string(node, "entry"))
            return node;
    }
    return NULL;
}

/* Returns the nodes that the entry needs, with the entry: the same bytes from every worker. */
static struct graph *graph_of(const struct graph *graph, const struct entry *entry)
{
    struct graph *update = task_closure(graph, entry->edges, entry->n_edges);
    struct edge *edges = arena_array(&update->arena, (size_t)entry->n_edges + 1, sizeof *edges);
    for (int i = 0; i < entry->n_edges; i++) {
        const char *name = graph_node(graph, entry->edges[i].node)->name;
        edges[i] = (struct edge){graph_find(update, name)->id, entry->edges[i].slot};
    }
    graph_add_entry(update, entry->name, edges, entry->n_edges);
    return update;
}

static void pack_cluster(void *context, msgpack_packer *packer)
{
    const struct cluster *cluster = context;
    struct str text = STR_INIT;
    for (size_t i = 0; i < cluster->tasks.n; i++) {
        const struct cluster_task *task = &cluster->tasks.items[i];
        str_printf(&text, "task %s:%d %s\n", task->job, task->index, task->address);
    }
    pack_key_text(packer, "cluster", str_text(&text));
    str_release(&text);
}

static int request_update(struct worker *worker, int task, const struct graph *update,
                          struct error *err)
{
    struct stream_writer *writer = stream_writer_new_memory("tf-exec", 1);
    int code = graph_write(writer, update, err);
    if (!code)
        code = stream_finish(writer, err);
    if (!code) {
        size_t n;
        const void *bytes = stream_writer_bytes(writer, &n);
        struct shape shape = shape_vector((int64_t)n);
        struct named_tensor graph = {"graph",
                                     tensor_borrow(UINT8, &shape, (void *)(uintptr_t)bytes)};
        struct driver_ask drive = {.verb = "update",
                                   .n_fields = 1,
                                   .pack = pack_cluster,
                                   .context = &worker->member.cluster,
                                   .tensors = &graph,
                                   .n_tensors = 1};
        code = driver_session_ask(worker->session, task, &drive, NULL, err);
    }
    stream_writer_free(writer);
    return code;
}

int worker_ask_for_updates(struct worker *worker, struct error *err)
{
    const struct graph *graph = worker->options.graph;
    const struct node *round = find_round(graph);
    if (!round)
        return 0;
    const struct entry *entry = graph_entry(graph, node_string(round, "entry"));
    int task = worker_task_of(worker, round);
    if (!entry || task < 0)
        return error_set(err, ERR_DATA, "%s: there is no entry '%s' that another task could run",
                         node_text(round), node_string(round, "entry"));
    struct graph *update = graph_of(graph, entry);
    int code = request_update(worker, task, update, err);
    graph_free(update);
    return code ? error_prefix(err, "%s: ", worker->member.task) : 0;
}
