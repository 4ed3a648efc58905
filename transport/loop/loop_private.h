/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop as the files of this folder see it.
 */
#ifndef TF_TRANSPORT_LOOP_PRIVATE_H
#define TF_TRANSPORT_LOOP_PRIVATE_H

#include <event2/event.h>
#include <pthread.h>
#include <stdatomic.h>

#include "transport/loop/loop.h"

struct loop_call {
    void (*call)(void *argument);
    void *argument;
};

struct loop_calls {
    struct loop_call *items;
    size_t n, capacity;
};

/* Asked while the loop polls: whether something came, which it has dealt with. */
struct loop_poller {
    bool (*poll)(void *context);
    /* Before the loop sleeps: a peer must wake it from here on. True: something came meanwhile.
     * May be NULL. */
    bool (*arm)(void *context, bool sleeping);
    void *context;
    bool is_socket; /* a system call asks it; an event tells of it as well */
    struct loop_poller *next;
};

/* When asking for events before sleeping is worth it. */
struct loop_spin {
    double limit; /* seconds */
    long n_cores;
    double checked; /* when it was last known whether cores are free */
    bool busy;
    int loadavg;            /* open file, or -1 */
    unsigned skip, penalty; /* sleeps without polling that are left, and how many next time */
};

struct loop {
    struct event_base *base;
    pthread_mutex_t lock; /* guards `calls` */
    struct loop_calls calls, running;
    atomic_bool has_calls, asleep;
    int wake_fd;
    struct event *wake;
    atomic_bool stopped;
    _Atomic(const void *) runner; /* identifies the thread that runs it; NULL: none */
    bool worked;                  /* an event was dealt with in this round */
    atomic_int_least64_t round;   /* when it began, in ns; 0: the loop waits for events */
    atomic_int_least64_t longest; /* ns that a round took */
    int unasked;                  /* looks since all descriptors were asked */
    struct loop_spin spin;
    struct loop_poller *pollers, *cursor; /* cursor: whose turn is next */
    int n_sockets;                        /* of the pollers */
    struct keeper *keeper;
};

/* Called in the loop's thread when a round ends and the next one begins, or when the loop waits. */
void loop_begin_round(struct loop *loop);
void loop_end_round(struct loop *loop);

/* Called first by whoever deals with an event: the round was not for nothing. */
static inline void loop_worked(struct loop *loop)
{
    loop->worked = true;
    if (!atomic_load_explicit(&loop->round, memory_order_relaxed))
        loop_begin_round(loop);
}

/* Runs what was posted, in the calling thread, while nobody runs the loop or from within it. */
void loop_run_posted(struct loop *loop);

void loop_add_poller(struct loop *loop, struct loop_poller *poller);
void loop_remove_poller(struct loop *loop, struct loop_poller *poller);

/* Returns whether to poll before this sleep; and what came of it. */
void spin_init(struct loop_spin *spin);
void spin_release(struct loop_spin *spin);
bool spin_is_worth(struct loop_spin *spin, double now);
void spin_ended(struct loop_spin *spin, bool found);

#endif
