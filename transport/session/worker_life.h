/* SPDX-License-Identifier: Apache-2.0
 *
 * The states of a worker, and how each event acts in each state. Signals are handled by the
 * process, which ends a wait or finishes a step, and then makes its worker leave (bin/exec_life.h).
 */
#ifndef TF_TRANSPORT_WORKER_LIFE_H
#define TF_TRANSPORT_WORKER_LIFE_H

enum worker_life {
    WORKER_MEETS,  /* it waits for others: there is no session, and no other relies on it */
    WORKER_STARTS, /* variables get their values */
    WORKER_WAITS,  /* it has joined, so others rely on it, and is between two steps */
    WORKER_HEARD,  /* as WAITS, but another leaves, for which its state is to be kept */
    WORKER_STEPS,
    WORKER_PARTS, /* the others go on without it, and are to get its state */
    WORKER_LEFT,
    WORKER_STATES
};

enum worker_event {
    WORKER_OPENED,  /* the session is open */
    WORKER_STARTED, /* it has joined */
    WORKER_BEGINS,  /* a step, or an entry */
    WORKER_ENDS,    /* that step or entry ends */
    WORKER_HEARS,   /* another worker leaves */
    WORKER_RESTS,   /* shards may ask for its private state */
    WORKER_PARTED,  /* it has told the others that it leaves */
    WORKER_LEAVES,
    WORKER_GOES, /* it has left */
    WORKER_CLOSES,
    WORKER_EVENTS
};

enum worker_reaction {
    WORKER_BUG = 1, /* cannot happen in this process */
    WORKER_IGNORE,
    WORKER_GO_ON,
    WORKER_KEEP,      /* keep its own state, for a worker that leaves */
    WORKER_GIVE,      /* give what is asked for */
    WORKER_TELL,      /* tell the others; the journal is no longer needed */
    WORKER_TELL_GIVE, /* tell the others, then give them its state */
    WORKER_ABORT      /* close the links to others, with the reason */
};

/* Sets the next state. */
enum worker_reaction worker_react(enum worker_life *state, enum worker_event event);

#endif
