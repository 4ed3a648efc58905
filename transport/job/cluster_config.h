/* SPDX-License-Identifier: Apache-2.0
 *
 * The cluster as the environment variable TF_CONFIG describes it to TensorFlow's jobs:
 *
 *     {"cluster": {"chief": ["a:7000"], "ps": ["a:7001"], "worker": ["b:7010", "c:7010"]},
 *      "task": {"type": "worker", "index": 1}}
 *
 * A chief is a worker with extra duties; here chiefs are the first workers, worker:0 and up.
 */
#ifndef TF_TRANSPORT_CLUSTER_CONFIG_H
#define TF_TRANSPORT_CLUSTER_CONFIG_H

#include "base/str.h"
#include "graph/cluster.h"
#include "graph/task.h"

/* Appends the cluster in the syntax of its file (graph/cluster.h). `task` becomes "worker:2", or ""
 * if the JSON names none; other contents are ignored. ERR_CONFIG: "TF_CONFIG: what". */
int cluster_config_text(struct str *text, const char *json, char task[TASK_TEXT_BYTES],
                        struct error *err);

/* Parses the cluster itself, which must be zero-initialised. */
int cluster_from_config(struct cluster *cluster, const char *json, char task[TASK_TEXT_BYTES],
                        struct error *err);

#endif
