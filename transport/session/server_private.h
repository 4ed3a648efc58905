/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the server share. Private to transport.
 */
#ifndef TF_TRANSPORT_SERVER_PRIVATE_H
#define TF_TRANSPORT_SERVER_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/serial_queue.h"
#include "transport/session/served_life.h"
#include "transport/session/server.h"
#include "transport/session/update_loop.h"

struct server {
    struct server_options options;
    struct conns_watcher watcher; /* its owner is found by offsetof */
    struct update_loops *updates;
    struct serial_queue *graphs; /* reads and frees them: the larger they are the longer it takes */
    struct served_session *sessions; /* of the loop's thread */
    int n_sessions;                  /* that are not closing */
    bool ends;
    atomic_uint_fast64_t steps; /* that were run */
};

struct handle {
    VEC(struct edge) feeds;
    VEC(struct edge) fetches;
    VEC(int) targets;
    plan_order order;
};

struct served_step {
    struct session_done done;
    struct served_session *served;
    uint64_t query, id;
    struct peer *asker; /* held */
    const struct handle *handle;
    struct step step;
    struct rendezvous *rendezvous;
    struct tensor *feeds, *fetches;
    size_t n_feeds; /* that were taken: the handle may be gone at the end */
    atomic_int holders;
    struct served_step *next;
};

struct served_address {
    const char *task, *address;
};

/* A session that is served. Members without another comment are the loop's thread's; while the
 * graph is read, the queue's. */
struct served_session {
    struct server *server;
    uint64_t id;
    struct peer *owner; /* the driver's, held */
    struct graph *graph;
    struct session *session;
    struct value_exchange *exchange;
    VEC(struct handle *) handles;
    struct served_session *next;

    /* Kept until the graph is read: its bytes, and where other tasks are. */
    struct tensor stream;
    VEC(struct served_address) addresses;
    struct arena arena;  /* of the texts */
    struct error unread; /* why it cannot be served */

    /* Kept until the session is open. */
    uint64_t open_query;
    struct loop_timer *deadline;

    pthread_mutex_t lock;  /* guards what follows */
    enum served_life life; /* changed by the loop's thread alone */
    struct served_step *steps;
    int n_holders;             /* steps, who reads the graph, and others */
    struct served_step *spare; /* memory of steps that are over */
};

/* The session that a query names and the asker owns, for what is asked of it; NULL: answered with
 * an error. */
struct served_session *server_find(struct server *server, const struct query *query,
                                   enum served_event event);

/* It goes on by its table, which says what is to be done. The loop's thread. */
enum served_reaction served_react(struct served_session *served, enum served_event event);

/* server_session.c: the verbs open and close. */
void server_verb_open(void *context, const struct query *query);
void server_verb_close(void *context, const struct query *query);
/* A link to a task opened, or a dial was given up: sessions that wait for it go on. */
void served_linked(struct served_session *served, struct peer *peer);
void served_not_linked(struct served_session *served, const char *task, const struct error *why);
/* Cancels its steps; it is freed when they are over. The one that waits for it to open is told. */
void served_close(struct served_session *served, const struct error *why);
void served_free(struct served_session *served);

/* server_step.c: the verbs register, step and cancel. */
void server_verb_register(void *context, const struct query *query);
void server_verb_step(void *context, const struct query *query);
void server_verb_cancel(void *context, const struct query *query);
void served_cancel_all(struct served_session *served, const struct error *why);

/* Keeps a session that is served from being freed, from any thread. */
void served_retain(struct served_session *served);
void served_drop(struct served_session *served);

/* server_variables.c: the verbs read and write. */
void server_verb_read(void *context, const struct query *query);
void server_verb_write(void *context, const struct query *query);

void handle_free(struct handle *handle);

#endif
