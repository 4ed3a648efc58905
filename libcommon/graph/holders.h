/* SPDX-License-Identifier: Apache-2.0
 *
 * Which tasks hold the variables of a placed graph, and therefore save and restore them. Nothing
 * else about a job, its mode or whether its cluster has shards, matters for that.
 */
#ifndef TF_GRAPH_HOLDERS_H
#define TF_GRAPH_HOLDERS_H

#include "graph/graph.h"

/* Returns whether the node is a variable that every checkpoint must have. Variables that a worker
 * keeps for itself (graph/worker_attr.h) are not. */
bool holders_must_save(const struct node *node);

/* Returns the first such variable that the task does not hold (DEVICE_OPEN: that no task of the job
 * holds); NULL: none. A variable on every task of the job (`task:*`) is held by each of them. */
const struct node *holders_find_elsewhere(const struct graph *graph, const char *job, int task);

enum holders {
    HOLDERS_NONE,         /* there is no such variable */
    HOLDERS_SHARDS,       /* tasks of the job ps */
    HOLDERS_EACH_WORKER,  /* each task of another job has all of them */
    HOLDERS_FIRST_WORKER, /* the first task of that job alone has all of them */
    HOLDERS_SPREAD,       /* neither the shards nor any one process have all of them */
    HOLDERS_KINDS
};
extern const char *const holders_words[HOLDERS_KINDS];

/* Returns the holders for the whole job. Sets *one to a variable that the shards do not hold, or to
 * any variable with HOLDERS_SHARDS. */
enum holders holders_of(const struct graph *graph, const struct node **one);

#endif
