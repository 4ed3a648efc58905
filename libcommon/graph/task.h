/* SPDX-License-Identifier: Apache-2.0
 *
 * The tasks of a placed graph: which of them a node is on, the instance of a worker's graph that is
 * meant for every task of its job, and what a task needs of a graph that was cut.
 */
#ifndef TF_GRAPH_TASK_H
#define TF_GRAPH_TASK_H

#include "graph/device_name.h"
#include "graph/graph.h"

/* Longest "job:N" with its terminator. */
#define TASK_TEXT_BYTES 80

/* "ps:0" of "/job:ps/task:0/device:CPU:0". ERR_DATA when the device says no job or no one task. */
int task_of_device(char text[TASK_TEXT_BYTES], const char *device, struct error *err);

/* Splits "ps:0" or "/job:ps/task:0". ERR_USAGE when it is neither. */
int task_parse(const char *text, char job[DEVICE_WORD_BYTES], int *index, struct error *err);

/* Replaces `task:*` of the job by `index`, and `task:k%G` by the k-th task of the group that it is
 * the first of, wherever a node says a device: where it is, where it sends to and receives from.
 * ERR_DATA for a device name that cannot be read; ERR_CONFIG when the index is no first of a group.
 */
int task_instance(struct graph *graph, const char *job, int index, struct error *err);

/* The replica of such a graph that a task belongs to: its index, or that of its group. */
int task_replica(const struct graph *graph, const char *job, int index);

/* The tasks that nodes are on, in the order in which they first occur, and for each node which of
 * them. */
struct task_table {
    VEC(const char *) names; /* "ps:0" */
    int *of_node;
    struct arena arena;
};

/* ERR_CONFIG when a node has no full device. The table is zeroed before. */
int task_table_fill(struct task_table *table, const struct graph *graph, struct error *err);
void task_table_release(struct task_table *table);

/* The nodes of task `task` of a cut graph (graph/join.h) as a graph of their own, without entries
 * and aliases. It borrows from the graph, which must outlive it. ERR_DATA when an edge comes from
 * another task: such a graph was not cut. */
int task_graph(const struct graph *graph, const struct task_table *table, int task,
               struct graph **result, struct error *err);

/* Returns the nodes that these edges depend on, Sends of Recvs included, as a graph of its own in
 * the same way. Other nodes make no difference to it. */
struct graph *task_closure(const struct graph *graph, const struct edge *edges, int n);

#endif
