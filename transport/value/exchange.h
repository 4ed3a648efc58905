/* SPDX-License-Identifier: Apache-2.0
 *
 * The values of sessions on their way between tasks. Each process that takes part in a session has
 * an exchange for it; each step of it that runs here meets there: what other tasks send, perhaps
 * before the step has begun here, and what is waited for.
 *
 * Steps of a session have growing ids, begun here in that order (not all of them need this task). A
 * value for a step that is over is dropped, its credit given back. Thread-safe.
 */
#ifndef TF_TRANSPORT_EXCHANGE_H
#define TF_TRANSPORT_EXCHANGE_H

#include "graph/graph.h"
#include "transport/value/flow.h"

/* Steps that values may come for before they begin. */
#define EXCHANGE_EARLY_MAX 64

struct exchanges; /* of a process */
struct value_exchange;

struct exchanges *exchanges_new(void);
void exchanges_free(struct exchanges *exchanges); /* all exchanges are closed before */

/* For the task's graph: only what one of its Recvs names is accepted.
 * NULL: there is a session of that id. */
struct value_exchange *exchange_open(struct exchanges *exchanges, uint64_t session,
                                     const char *task, const struct graph *graph);
/* Values for a task go to this peer, which it holds. */
void exchange_route(struct value_exchange *exchange, const char *task, struct peer *peer);
/* The first task that the graph talks to and that has no route yet, or, with `task`, that one;
 * NULL: there is none. */
const char *exchange_lacks(struct value_exchange *exchange, const char *task);
/* Closes the exchange when no step of it runs any more. */
void exchange_close(struct value_exchange *exchange);

/* The rendezvous of a step, freed through its interface when the step is over. ERR_PROTOCOL when
 * the id is not larger than those before. */
int exchange_begin(struct value_exchange *exchange, uint64_t step, struct rendezvous **rendezvous,
                   struct error *err);

/* A step (0: all) has failed: what it has announced and nobody was granted is dropped. */
void exchange_forget(struct value_exchange *exchange, uint64_t step);

/* The records of a peer: `value` or `share`, and `announce`. ERR_PROTOCOL: it broke the rules, and
 * its link should end. */
int exchanges_value(struct exchanges *exchanges, struct peer *peer, const struct record *record,
                    struct error *err);
int exchanges_announce(struct exchanges *exchanges, struct peer *peer, const struct record *record,
                       struct error *err);

/* The peer's link is gone: aborts the steps of sessions that have a route to it, naming it and what
 * they wait for. */
void exchanges_lost(struct exchanges *exchanges, struct peer *peer, const struct error *why);

/* Values and announcements that were dropped because nobody would ever take them. */
uint64_t exchanges_dropped(const struct exchanges *exchanges);

#endif
