/* SPDX-License-Identifier: Apache-2.0
 *
 * What a Variable of a worker says of whose it is.
 */
#ifndef TF_GRAPH_WORKER_ATTR_H
#define TF_GRAPH_WORKER_ATTR_H

/* bool: each worker has a value of its own, which lasts, with zeros at first; checkpoints have
 * those of all workers. */
#define PER_WORKER "_per_worker"

#endif
