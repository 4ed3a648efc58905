/* SPDX-License-Identifier: Apache-2.0
 *
 * The cluster as TensorFlow's jobs are told it, by the environment variable TF_CONFIG:
 *
 *     {"cluster": {"chief": ["a:7000"], "ps": ["a:7001"], "worker": ["b:7010", "c:7010"]},
 *      "task": {"type": "worker", "index": 1}}
 *
 * A chief is a worker that does more: here the first workers, worker:0 and so on.
 */
#ifndef TF_TRANSPORT_CLUSTER_CONFIG_H
#define TF_TRANSPORT_CLUSTER_CONFIG_H

#include "base/str.h"
#include "graph/cluster.h"
#include "graph/task.h"

/* Appends the cluster as its file would say it (graph/cluster.h). `task` becomes "worker:2", or ""
 * when the JSON says none; what else is in it is passed over. ERR_CONFIG: "TF_CONFIG: what". */
int cluster_config_text(struct str *text, const char *json, char task[TASK_TEXT_BYTES],
                        struct error *err);

/* The cluster itself, which is zero-initialised before. */
int cluster_from_config(struct cluster *cluster, const char *json, char task[TASK_TEXT_BYTES],
                        struct error *err);

#endif
