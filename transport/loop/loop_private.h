/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop's private interface for the files of this folder.
 */
#ifndef TF_TRANSPORT_LOOP_PRIVATE_H
#define TF_TRANSPORT_LOOP_PRIVATE_H

#include <event2/event.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/vec.h"
#include "transport/loop/loop.h"

struct loop_call {
    void (*call)(void *argument);
    void *argument;
};

typedef VEC(struct loop_call) loop_calls;

/* Called while the loop polls: returns whether there was something, which it has handled. */
struct loop_poller {
    bool (*poll)(void *context);
    /* Called before the loop sleeps: from here on the peer must wake it. Returns true if something
     * came meanwhile. May be NULL. */
    bool (*arm)(void *context, bool sleeping);
    void *context;
    bool is_socket; /* polled by a system call; events report it as well */
    struct loop_poller *next;
};

/* Decides whether polling before sleeping is worthwhile. */
struct loop_busy_poll {
    double limit; /* seconds */
    long n_cores;
    double checked; /* when it was last checked whether cores are free */
    bool busy;
    int loadavg;            /* open file, or -1 */
    unsigned skip, penalty; /* sleeps left without polling, and how many next time */
};

struct loop {
    struct event_base *base;
    pthread_mutex_t lock; /* guards `calls` */
    loop_calls calls, running;
    atomic_bool has_calls, asleep;
    int wake_fd;
    struct loop_event *wake;
    atomic_bool stopped;
    _Atomic(const void *) runner; /* identifies the running thread; NULL: none */
    bool worked;                  /* this round has handled an event */
    atomic_int_least64_t round;   /* its start, in ns; 0: the loop waits for events */
    atomic_int_least64_t longest; /* longest round in ns */
    int unasked;                  /* polls since all descriptors were asked */
    struct loop_busy_poll busy_poll;
    struct loop_poller *pollers, *cursor; /* cursor: the next one to poll */
    int n_sockets;                        /* number of pollers with a socket */
    struct heartbeat *heartbeat;
};

/* Called in the loop's thread when a round begins. */
void loop_begin_round(struct loop *loop);

/* Every handler of an event calls this first: the round has handled something. */
static inline void loop_worked(struct loop *loop)
{
    loop->worked = true;
    if (!atomic_load_explicit(&loop->round, memory_order_relaxed))
        loop_begin_round(loop);
}

/* Runs the posted calls in the calling thread, while no thread runs the loop or from within it. */
void loop_run_posted(struct loop *loop);

void loop_add_poller(struct loop *loop, struct loop_poller *poller);
void loop_remove_poller(struct loop *loop, struct loop_poller *poller);

/* Whether to poll before this sleep; and the outcome. */
void busy_poll_init(struct loop_busy_poll *busy_poll);
void busy_poll_release(struct loop_busy_poll *busy_poll);
bool busy_poll_is_worth(struct loop_busy_poll *busy_poll, double now);
void busy_poll_ended(struct loop_busy_poll *busy_poll, bool found);

#endif
