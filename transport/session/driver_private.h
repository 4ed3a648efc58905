/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the driving side share. Private to transport.
 */
#ifndef TF_TRANSPORT_DRIVER_PRIVATE_H
#define TF_TRANSPORT_DRIVER_PRIVATE_H

#include <pthread.h>

#include "exec/run/divide.h"
#include "graph/task.h"
#include "transport/session/driver_session.h"

/* Another task of the session. */
struct remote_task {
    const char *name;
    int task;          /* in the table */
    struct peer *peer; /* held; NULL: not linked yet */
    bool is_open;      /* the session, there */
    uint64_t origin;   /* of its variables (conns_origin) */
};

/* A request that was divided and registered. */
struct program {
    struct str key;                  /* feeds, fetches, targets, as bytes */
    struct share *shares;            /* by task of the table */
    uint64_t *handles;               /* by remote task; of those whose share is not idle */
    VEC(struct edge) feeds, fetches; /* of what runs here, in its own graph */
    VEC(int) targets;
    plan_order order, own_order; /* of all of it; of what runs here, by its own graph */
};

struct driver_step;

struct driver_session {
    struct driver_session_options options;
    uint64_t id, incarnation;
    struct task_table table;
    int own; /* task; -1: nothing runs here */
    struct graph *own_graph;
    struct session *local;
    struct value_exchange *exchange;
    VEC(struct remote_task) tasks;
    VEC(struct program *) programs;
    struct str key; /* of the request that is looked for */
    uint64_t last_step;
    const struct step *step; /* for whose program tasks are asked; NULL: for none */
    struct conns_watcher watcher;

    pthread_mutex_t lock; /* guards what follows, and what calls count down */
    pthread_cond_t changed;
    struct driver_step *running;
    struct error dial_error; /* a task cannot be reached */
    struct error cancelled;  /* for good */
};

/* Requests that are on their way to several tasks. */
struct task_calls {
    struct driver_session *session;
    int waiting;   /* session->lock */
    double until;  /* when who has not answered is cut off; 0: never */
    bool gives_up; /* it is at once when the session is given up */
    struct error first;
};

struct task_call {
    struct call call; /* first */
    struct task_calls *all;
    void (*reply)(void *context, const struct record *record); /* in the loop's thread, or NULL */
    void *context;
};

/* Starts a request to a task; asked_send sends it. NULL: its failure is noted. */
msgpack_packer *asked_begin(struct task_call *asked, struct task_calls *all,
                            const struct remote_task *task, const char *verb, int n_fields);
void asked_send(struct task_call *asked, const struct named_tensor *tensors, int n);
/* Waits for all answers; the first failure. */
int asking_wait(struct task_calls *all, struct error *err);

/* Returns whether nobody waits for the session any more, before it is open. */
bool driver_is_given_up(const struct driver_session *session);
/* Ends the links to its tasks, and so all that is waited for of one that stands still: its lease is
 * long for who has given up. Only where the session pumps, as links are another's else. */
#define DRIVER_PATIENCE 5.0 /* seconds before that; and for all answers when it is closed */
void driver_cut_off(struct driver_session *session);

/* Waits until the condition holds, which changes under the session's lock. It is asked with that
 * lock, but without it where the caller pumps. */
void driver_wait(struct driver_session *session, bool (*until)(void *context), void *context);
/* Must be called after such a change, with the lock held. */
void driver_changed(struct driver_session *session);

/* driver_link.c: links all tasks to the session and watches them, until they are let go. */
int driver_dial(struct driver_session *session, struct error *err);
void driver_let_go(struct driver_session *session);
/* The address from the cluster; NULL: it does not have the task. */
const char *driver_address(const struct driver_session *session, const char *task,
                           struct error *err);

/* driver_program.c: the program of a call, made and registered when it is new. NULL: failed. */
struct program *driver_program(struct driver_session *session, const struct session_call *call,
                               struct error *err);
void program_free(struct program *program, size_t n_tasks);

/* driver_step.c: a task of the session is gone; in the loop's thread. */
void driver_step_lost(struct driver_session *session, const struct error *why);

#endif
