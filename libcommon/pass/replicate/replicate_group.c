/* SPDX-License-Identifier: Apache-2.0
 *
 * Replicas of several tasks: a worker is a group of tasks that follow each other, of which the
 * first drives its steps and the others serve it. The script says what is where: /job:worker/task:1
 * is the second task of each group. What it leaves open may be on any of them, but for what belongs
 * to the driver: what is fed, and what replication added, the worker's version and its pushes to
 * the clock.
 */
#include <string.h>

#include "graph/device_name.h"
#include "pass/replicate/replicate_private.h"

#define WORKER_JOB "worker"

/* The task within the group; DEVICE_OPEN: any. */
static int member_of(struct replicator *r, const struct node *node, int task)
{
    int size = r->options->replica_tasks;
    if (device_task_is_many(task) || task == DEVICE_OPEN) {
        const struct node *source = graph_find(r->from, node->name);
        return !source || node_has(source, OP_FED) ? 0 : DEVICE_OPEN; /* the driver's */
    }
    if (task >= size)
        error_set(r->err, ERR_DATA, "%s: it asks for task %d, but a replica has %d tasks",
                  node_text(node), task, size);
    return task;
}

int replicate_group(struct replicator *r)
{
    int size = r->options->replica_tasks;
    for (size_t i = 0; size > 1 && i < r->to->nodes.n && !r->err->code; i++) {
        struct node *node = graph_node(r->to, (int)i);
        struct device_name name;
        struct error ignored = ERROR_INIT;
        if (!*node->device || device_name_parse(&name, node->device, &ignored) ||
            strcmp(name.job, WORKER_JOB) != 0)
            continue;
        name.task = device_group_task(size, member_of(r, node, name.task));
        node->device = device_name_text(&r->to->arena, &name);
    }
    return r->err->code;
}
