/* SPDX-License-Identifier: Apache-2.0
 *
 * The tasks of a placed graph: which of them a node is on, the instance of a worker's graph that
 * stands for every task of its job, and the part of a partitioned graph that a task needs.
 */
#ifndef TF_GRAPH_TASK_H
#define TF_GRAPH_TASK_H

#include "graph/device_name.h"
#include "graph/graph.h"

/* Longest "job:N" with its terminator. */
#define TASK_TEXT_BYTES 80

/* Converts "/job:ps/task:0/device:CPU:0" to "ps:0". ERR_DATA if no one task is named. */
int task_of_device(char text[TASK_TEXT_BYTES], const char *device, struct error *err);

/* Splits "ps:0" or "/job:ps/task:0". ERR_USAGE when it is neither. */
int task_parse(const char *text, char job[DEVICE_WORD_BYTES], int *index, struct error *err);

/* Replaces `task:*` of the job by `index`, and `task:k%G` by the k-th task of the group whose first
 * task is `index`, wherever a node names a device: its own, and those it sends to and receives
 * from. ERR_DATA for a device name that cannot be parsed; ERR_CONFIG if the index is no first of a
 * group. */
int task_instance(struct graph *graph, const char *job, int index, struct error *err);

/* Returns the replica of such a graph that a task belongs to: its index, or that of its group. */
int task_replica(const struct graph *graph, const char *job, int index);

/* The tasks that have nodes, in order of first occurrence, and the task of each node. */
struct task_table {
    VEC(const char *) names; /* "ps:0" */
    int *of_node;
    struct arena arena;
};

/* ERR_CONFIG when a node has no full device. The table is zeroed before. */
int task_table_fill(struct task_table *table, const struct graph *graph, struct error *err);
void task_table_release(struct task_table *table);

/* Makes a graph of the nodes of task `task` of a partitioned graph (graph/join.h), without entries
 * and aliases. It borrows from the graph, which must outlive it. ERR_DATA if an edge comes from
 * another task: the graph was not partitioned. */
int task_graph(const struct graph *graph, const struct task_table *table, int task,
               struct graph **result, struct error *err);

/* Returns a graph, made in the same way, of the nodes that these edges depend on, including the
 * Sends of Recvs. Other nodes have no influence on it. */
struct graph *task_closure(const struct graph *graph, const struct edge *edges, int n);

#endif
