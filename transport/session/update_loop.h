/* SPDX-License-Identifier: Apache-2.0
 *
 * The update of a model that several workers train. A shard runs it, so that no worker's end can
 * leave an update incomplete. The request `update` carries the entry's part of the graph, for all
 * shards; the shard then runs it repeatedly as long as it lives. Every worker sends the request; an
 * update that already runs is not started again.
 */
#ifndef TF_TRANSPORT_UPDATE_LOOP_H
#define TF_TRANSPORT_UPDATE_LOOP_H

#include "base/serial_queue.h"
#include "transport/session/server.h"

struct update_loops;

#define UPDATE_LOOPS_MAX 16

/* Registers the verb. The options and the queue are the server's; the queue runs what would block
 * the loop. An update that fails calls `failed`, in the loop's thread. */
struct update_loops *update_loops_new(const struct server_options *options,
                                      struct serial_queue *graphs,
                                      void (*failed)(void *context, const struct error *why),
                                      void *context);
/* Ends all updates; runs the loop meanwhile. */
void update_loops_free(struct update_loops *updates);

#endif
