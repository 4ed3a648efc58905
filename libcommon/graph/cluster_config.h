/* SPDX-License-Identifier: Apache-2.0
 *
 * The cluster as TensorFlow's jobs are told it, by the environment variable TF_CONFIG:
 *
 *     {"cluster": {"ps": ["a:7000"], "worker": ["b:7010", "c:7010"]},
 *      "task": {"type": "worker", "index": 1}}
 */
#ifndef TF_GRAPH_CLUSTER_CONFIG_H
#define TF_GRAPH_CLUSTER_CONFIG_H

#include "graph/cluster.h"
#include "graph/task.h"

/* The cluster is zero-initialised before. `task` becomes "worker:1", or "" when the text says none;
 * what else is in it is passed over. ERR_CONFIG: "TF_CONFIG: what". */
int cluster_from_config(struct cluster *cluster, const char *json, char task[TASK_TEXT_BYTES],
                        struct error *err);

#endif
