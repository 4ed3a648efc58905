/* SPDX-License-Identifier: Apache-2.0
 *
 * What a Variable of a worker says of whose it is.
 */
#ifndef TF_GRAPH_WORKER_ATTR_H
#define TF_GRAPH_WORKER_ATTR_H

/* string: each worker has a value of its own, which lasts, with zeros at first; checkpoints have
 * those of all workers. What becomes of them with another number of workers: */
#define PER_WORKER "_per_worker"
#define PER_WORKER_SUM "sum"   /* worker k of n gets the sum of those of k, k + n, ... */
#define PER_WORKER_ROWS "rows" /* it gets its part of the rows of the sum; it uses no others */
#define PER_WORKER_SAME "same" /* it gets the first one's, as all have the same */

#endif
