/* SPDX-License-Identifier: Apache-2.0
 *
 * Who has the variables of a graph that was placed, and so who saves and restores them: nobody asks
 * the mode of a job, or whether its cluster has shards, for that.
 */
#ifndef TF_GRAPH_HOLDERS_H
#define TF_GRAPH_HOLDERS_H

#include "graph/graph.h"

/* Returns whether the node is a variable that each checkpoint must have. Variables that a worker
 * keeps for itself (graph/worker_attr.h) are not. */
bool holders_must_save(const struct node *node);

/* The first of those that the task does not have (DEVICE_OPEN: none of the job's tasks); NULL: it
 * has all. A variable on every task of the job (`task:*`) is on each of them. */
const struct node *holders_find_elsewhere(const struct graph *graph, const char *job, int task);

enum holders {
    HOLDERS_NONE,         /* there is no such variable */
    HOLDERS_SHARDS,       /* tasks of the job ps */
    HOLDERS_EACH_WORKER,  /* each task of another job has all of them */
    HOLDERS_FIRST_WORKER, /* task 0 of that job alone does */
    HOLDERS_SPREAD,       /* neither the shards have all, nor does any one process */
};

/* Returns the holders for all parts of a job. *one: a variable that shards do not have; any with
 * HOLDERS_SHARDS. */
enum holders holders_of(const struct graph *graph, const struct node **one);

#endif
