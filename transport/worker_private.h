/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the worker share. Private to transport.
 */
#ifndef TF_TRANSPORT_WORKER_PRIVATE_H
#define TF_TRANSPORT_WORKER_PRIVATE_H

#include "transport/worker.h"

/* The remote task of the session that has the node; -1: this one. */
int worker_task_of(const struct worker *worker, const struct node *node);

/* worker_drive.c: where a graph has a ClockRound, has the shard that it is on drive its entry. */
int worker_ask_to_drive(struct worker *worker, struct error *err);

#endif
