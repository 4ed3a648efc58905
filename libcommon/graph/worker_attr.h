/* SPDX-License-Identifier: Apache-2.0
 *
 * What a Variable of a worker says of whose it is.
 */
#ifndef TF_GRAPH_WORKER_ATTR_H
#define TF_GRAPH_WORKER_ATTR_H

/* string: each worker has a value of its own, which lasts, with zeros at first; checkpoints have
 * those of all workers. With another number of workers they become: */
#define PER_WORKER "_per_worker"
#define PER_WORKER_SUM "sum"   /* worker k of n gets the sum of those of k, k + n, ... */
#define PER_WORKER_ROWS "rows" /* it gets its part of the rows of the sum; it uses no others */
#define PER_WORKER_SAME "same" /* it gets the first one's, as all have the same */

/* Marks a variable of which each worker has a part along an axis, whose length in the graph is
 * unknown (collective/rows.h, collective_part): checkpoints have it whole, under its name. */
#define WORKER_PART_SHAPE "_part_shape" /* shape: of the whole */
#define WORKER_PART_AXIS "_part_axis"   /* int */

/* bool, of the node that takes such a part of an initial value, which is to be the first worker's.
 */
#define WORKER_PART_INITIAL "_part_initial"

/* The name of the variable that has the clock's version that a worker computes from. */
#define WORKER_VERSION "clock/version"

/* Names, where a worker pushes every so many steps: of the variable that has how many it has run,
 * and of the constant that says how many make a push. */
#define WORKER_STEP_COUNT "clock/count"
#define WORKER_PUSHES "clock/pushes"
#define WORKER_PUSHES_EVERY WORKER_PUSHES "/every"

/* bool, of a collective op: that one of the workers has left is an error. */
#define ALL_WORKERS "_all_workers"

/* bool, of a Variable that a worker sets whenever it joins: it is in no checkpoint. */
#define WORKER_LOCAL "_local"

/* bool, of a Variable of a worker: whether it is to run the entry `rest` before it goes on. */
#define WORKER_ASKED "_asked"

/* bool, of a random op: all workers draw the same, what one alone would. */
#define DRAWS_ALIKE "_draws_alike"

#endif
