/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/task.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "graph/join.h"
#include "graph/walk.h"

int task_of_device(char text[TASK_TEXT_BYTES], const char *device, struct error *err)
{
    struct device_name name;
    if (device_name_parse(&name, device, err))
        return err->code;
    if (!*name.job || name.task < 0)
        return error_set(err, ERR_DATA, "device '%s' is not of one task", device);
    snprintf(text, TASK_TEXT_BYTES, "%s:%d", name.job, name.task);
    return 0;
}

int task_parse(const char *text, char job[DEVICE_WORD_BYTES], int *index, struct error *err)
{
    struct error ignored = ERROR_INIT;
    struct device_name name;
    char full[2 * TASK_TEXT_BYTES];
    const char *colon = strrchr(text, ':');
    if (*text != '/' && colon && strlen(text) < TASK_TEXT_BYTES && !memchr(text, '/', strlen(text)))
        snprintf(full, sizeof full, "/job:%.*s/task:%s", (int)(colon - text), text, colon + 1);
    else
        snprintf(full, sizeof full, "%.*s", (int)sizeof full - 1, text);
    if (*full != '/' || device_name_parse(&name, full, &ignored) || !*name.job || name.task < 0 ||
        *name.type)
        return error_set(err, ERR_USAGE, "'%s' is not a task; one is written ps:0", text);
    snprintf(job, TASK_TEXT_BYTES, "%s", name.job);
    *index = name.task;
    return 0;
}

/* ---- instances ---- */

/* Returns the name with the index in place of the star, in the graph's arena, or the name itself if
 * it has none. NULL on failure. */
static const char *instance_of(struct graph *graph, const char *device, const char *job, int index,
                               struct error *err)
{
    struct device_name name;
    if (!strstr(device, "task:*") && !strchr(device, '%'))
        return device;
    if (device_name_parse(&name, device, err))
        return NULL;
    if (strcmp(name.job, job) != 0 || !device_task_is_many(name.task))
        return device;
    int size = device_group_size(name.task);
    if (index % size) {
        error_set(err, ERR_CONFIG,
                  "the replicas of this graph are groups of %d tasks, of which the first drive: "
                  "%s:%d serves (tf-exec serve)",
                  size, job, index);
        return NULL;
    }
    name.task = size == 1 ? index : index + device_group_member(name.task);
    return device_name_text(&graph->arena, &name);
}

static int instance_attr(struct graph *graph, struct node *node, const char *attr, const char *job,
                         int index, struct error *err)
{
    const char *device = instance_of(graph, node_string(node, attr), job, index, err);
    if (!device)
        return error_prefix(err, "%s: ", node_text(node));
    return graph_set_attr(graph, node, &(struct attr){attr, attr_string(device)}, err);
}

int task_instance(struct graph *graph, const char *job, int index, struct error *err)
{
    for (size_t i = 0; i < graph->nodes.n; i++) {
        struct node *node = graph_node(graph, (int)i);
        const char *device = instance_of(graph, node->assigned, job, index, err);
        if (!device)
            return err->code == ERR_CONFIG ? err->code : error_prefix(err, "%s: ", node_text(node));
        if (device != node->assigned)
            graph_set_assigned(graph, node, device);
        if ((node_is(node, "Send") || node_is(node, "Recv")) &&
            (instance_attr(graph, node, "send_device", job, index, err) ||
             instance_attr(graph, node, "recv_device", job, index, err)))
            return err->code;
    }
    return 0;
}

int task_replica(const struct graph *graph, const char *job, int index)
{
    struct device_name name;
    struct error ignored = ERROR_INIT;
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const char *device = graph_node(graph, (int)i)->assigned;
        if (strchr(device, '%') && !device_name_parse(&name, device, &ignored) &&
            !strcmp(name.job, job))
            return index / device_group_size(name.task);
    }
    return index;
}

/* ---- the tasks of a graph ---- */

int task_table_fill(struct task_table *table, const struct graph *graph, struct error *err)
{
    table->of_node = mem_array(graph->nodes.n + 1, sizeof *table->of_node);
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const struct node *node = graph_node(graph, (int)i);
        char name[TASK_TEXT_BYTES];
        if (i && !strcmp(node->assigned, graph_node(graph, (int)i - 1)->assigned)) {
            table->of_node[i] = table->of_node[i - 1];
            continue;
        }
        if (!*node->assigned)
            return error_set(err, ERR_CONFIG, "%s: has no device", node_text(node));
        if (task_of_device(name, node->assigned, err)) {
            err->code = ERR_CONFIG;
            return error_prefix(err, "%s: ", node_text(node));
        }
        size_t task = vec_find(&table->names, name);
        if (task == table->names.n)
            vec_push(&table->names, arena_strdup(&table->arena, name));
        table->of_node[i] = (int)task;
    }
    return 0;
}

void task_table_release(struct task_table *table)
{
    mem_free(table->of_node);
    vec_release(&table->names);
    arena_release(&table->arena);
}

/* Copies the nodes whose `copy` is not negative; `copy` is set to their ids in the copy. */
static int copy_graph(const struct graph *graph, int *copy, struct graph **result,
                      struct error *err)
{
    struct graph *to = graph_new(graph->registry);
    int code = 0;
    for (size_t i = 0; i < graph->nodes.n; i++)
        if (copy[i] >= 0)
            copy[i] = graph_add_copy(to, graph_node(graph, (int)i))->id;
    for (size_t i = 0; !code && i < graph->nodes.n; i++) {
        const struct node *node = graph_node(graph, (int)i);
        struct node *made = copy[i] >= 0 ? graph_node(to, copy[i]) : NULL;
        for (int k = 0; made && !code && k < node->n_inputs + node->n_controls; k++) {
            bool data = k < node->n_inputs;
            int source = node_dependency(node, k).node;
            if (copy[source] < 0)
                code = error_set(err, ERR_DATA,
                                 "%s: takes '%s', which is in another task; tf-part cuts the graph",
                                 node_text(node), graph_node(graph, source)->name);
            else if (data)
                made->inputs[k].node = copy[source];
            else
                graph_add_control(to, made, copy[source]);
        }
    }
    if (code) {
        graph_free(to);
        to = NULL;
    }
    *result = to;
    return code;
}

int task_graph(const struct graph *graph, const struct task_table *table, int task,
               struct graph **result, struct error *err)
{
    int *copy = mem_array(graph->nodes.n + 1, sizeof *copy);
    for (size_t i = 0; i < graph->nodes.n; i++)
        copy[i] = table->of_node[i] == task ? 0 : -1;
    int code = copy_graph(graph, copy, result, err);
    mem_free(copy);
    return code;
}

struct graph *task_closure(const struct graph *graph, const struct edge *edges, int n)
{
    struct arena arena = ARENA_INIT;
    struct graph_walk walk = graph_walk_new(&arena, graph);
    int *copy = arena_array(&arena, graph->nodes.n + 1, sizeof *copy);
    struct error impossible = ERROR_INIT;
    struct graph *result;
    const struct node *node;
    for (int i = 0; i < n; i++)
        graph_walk_to(&walk, edges[i].node);
    while ((node = graph_walk_next(&walk, graph))) {
        const struct node *send = join_send_of(graph, node);
        graph_walk_needs(&walk, node);
        if (send)
            graph_walk_to(&walk, send->id);
    }
    for (size_t i = 0; i < graph->nodes.n; i++)
        copy[i] = walk.seen[i] ? 0 : -1;
    copy_graph(graph, copy, &result, &impossible);
    arena_release(&arena);
    return result;
}
