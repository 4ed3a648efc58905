/* SPDX-License-Identifier: Apache-2.0
 *
 * The update of a model that several workers train: a shard runs it, so that no worker's end can
 * leave half of it behind. The request `update` brings the entry's part of the graph, all shards'
 * of it; the shard then runs it again and again as long as it lives. Every worker asks for it: what
 * is updated already is left at that.
 */
#ifndef TF_TRANSPORT_UPDATE_LOOP_H
#define TF_TRANSPORT_UPDATE_LOOP_H

#include "base/serial_queue.h"
#include "transport/session/server.h"

struct update_loops;

#define UPDATE_LOOPS_MAX 16

/* Registers the verb. The options are the server's, as is the queue, which takes what the loop must
 * not wait for. An update that fails is told to `failed`, in the loop's thread. */
struct update_loops *update_loops_new(const struct server_options *options,
                                      struct serial_queue *graphs,
                                      void (*failed)(void *context, const struct error *why),
                                      void *context);
/* Ends all; runs the loop meanwhile. */
void update_loops_free(struct update_loops *updates);

/* server.c: of what a session runs here; and the graph whose bytes a request brought, as `what`,
 * which are released. */
struct session_options server_session_options(const struct server_options *options);
int server_read_graph(const struct server_options *options, struct tensor *stream, const char *what,
                      struct graph **graph, struct error *err);

#endif
