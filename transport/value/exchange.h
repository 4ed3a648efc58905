/* SPDX-License-Identifier: Apache-2.0
 *
 * The values of sessions in transit between tasks. Each process that takes part in a session has an
 * exchange for it. There, each step that runs here matches the values that other tasks send,
 * perhaps before the step has begun here, with the Recvs that wait for them.
 *
 * Ids of a session's steps grow, and steps begin here in that order (not all of them need this
 * task). A value for a step that is over is dropped, and its credit returned. Thread-safe.
 */
#ifndef TF_TRANSPORT_EXCHANGE_H
#define TF_TRANSPORT_EXCHANGE_H

#include "graph/graph.h"
#include "transport/value/flow.h"

/* The number of steps for which values may arrive before they begin. */
#define EXCHANGE_EARLY_MAX 64

struct exchanges; /* of a process */
struct value_exchange;

struct exchanges *exchanges_new(void);
void exchanges_free(struct exchanges *exchanges); /* close all exchanges before */

/* Opens an exchange for the task's graph, which accepts only values that a Recv of it names. NULL:
 * a session of that id exists. */
struct value_exchange *exchange_open(struct exchanges *exchanges, uint64_t session,
                                     const char *task, const struct graph *graph);
/* Values for the task are sent to this peer, which the exchange holds. */
void exchange_route(struct value_exchange *exchange, const char *task, struct peer *peer);
/* Returns the first task that the graph sends to or receives from and that has no route yet, or
 * only `task` if it is given; NULL: there is none. */
const char *exchange_lacks(struct value_exchange *exchange, const char *task);
/* Closes the exchange. None of its steps may run any more. */
void exchange_close(struct value_exchange *exchange);

/* Creates the rendezvous of a step; freed through its interface when the step is over. ERR_PROTOCOL
 * if the id is not larger than all before. */
int exchange_begin(struct value_exchange *exchange, uint64_t step, struct rendezvous **rendezvous,
                   struct error *err);

/* A step (0: all) has failed: drops its announced values that were not granted. */
void exchange_forget(struct value_exchange *exchange, uint64_t step);

/* Take a peer's records `value`, `share`, and `announce`. ERR_PROTOCOL: its link should end. */
int exchanges_value(struct exchanges *exchanges, struct peer *peer, const struct record *record,
                    struct error *err);
int exchanges_announce(struct exchanges *exchanges, struct peer *peer, const struct record *record,
                       struct error *err);

/* The peer's link is gone: aborts the steps of sessions that have a route to it; the error names
 * the peer and the values that were awaited. */
void exchanges_lost(struct exchanges *exchanges, struct peer *peer, const struct error *why);

/* Returns the number of values and announcements that were dropped because nothing would take
 * them. */
uint64_t exchanges_dropped(const struct exchanges *exchanges);

#endif
