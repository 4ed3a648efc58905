/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes of a Variable of a worker: whose value it holds.
 */
#ifndef TF_GRAPH_WORKER_ATTR_H
#define TF_GRAPH_WORKER_ATTR_H

/* string: each worker has a lasting value of its own, at first zeros; checkpoints have those of all
 * workers. If the number of workers changes, the new values are: */
#define PER_WORKER "_per_worker"
#define PER_WORKER_SUM "sum"   /* worker k of n gets the sum of the values of k, k + n, ... */
#define PER_WORKER_ROWS "rows" /* it gets its part of the rows of the sum; it uses no others */
#define PER_WORKER_SAME "same" /* it gets the first worker's value, as all are equal */

/* Marks a variable of which each worker has a part along an axis, whose length is unknown in the
 * graph (collective/rows.h, collective_part): checkpoints have the whole, under its name. */
#define WORKER_PART_SHAPE "_part_shape" /* shape: of the whole */
#define WORKER_PART_AXIS "_part_axis"   /* int */

/* bool, of the node that takes such a part of an initial value: the first worker's is used. */
#define WORKER_PART_INITIAL "_part_initial"

/* The name of the variable with the clock's version that a worker computes from. */
#define WORKER_VERSION "clock/version"

/* Names, if a worker pushes only every few steps: of the variable that counts its steps, and of the
 * constant with the number of steps per push. */
#define WORKER_STEP_COUNT "clock/count"
#define WORKER_PUSHES "clock/pushes"
#define WORKER_PUSHES_EVERY WORKER_PUSHES "/every"

/* Entries of workers that step by themselves, and take the mean of what all have every so many
 * steps, the int64 constant that the first fetches; the second is run when a worker begins. */
#define WORKER_AVERAGE "average"
#define WORKER_ANCHOR "anchor"

/* bool, of a collective op: it fails if a worker has left. */
#define ALL_WORKERS "_all_workers"

/* bool, of a Variable that a worker sets whenever it joins: checkpoints leave it out. */
#define WORKER_LOCAL "_local"

/* bool, of a Variable of a worker: it must run the entry `rest` before its next step. */
#define WORKER_ASKED "_asked"

/* bool, of a random op: all workers draw the same numbers, as a single worker would. */
#define DRAWS_ALIKE "_draws_alike"

#endif
