/* SPDX-License-Identifier: Apache-2.0
 *
 * The states of a worker, and what each event does in each of them. Signals are the process's
 * business, which ends a wait or finishes a step, and then has its worker leave (bin/exec_life.h).
 */
#ifndef TF_TRANSPORT_WORKER_LIFE_H
#define TF_TRANSPORT_WORKER_LIFE_H

enum worker_life {
    WORKER_MEETS,  /* others are waited for: there is no session, and nobody counts on it */
    WORKER_STARTS, /* variables get their values */
    WORKER_WAITS,  /* it has joined, so others count on it, and is between two steps */
    WORKER_HEARD,  /* the same; another leaves, and what this one has is kept for that */
    WORKER_STEPS,
    WORKER_PARTS, /* the others go on without it, and are to get what it has */
    WORKER_LEFT,
    WORKER_STATES
};

enum worker_event {
    WORKER_OPENED,  /* the session is there */
    WORKER_STARTED, /* it has joined */
    WORKER_BEGINS,  /* a step, or an entry */
    WORKER_ENDS,    /* that one */
    WORKER_HEARS,   /* that another leaves */
    WORKER_RESTS,   /* shards may ask for what it keeps for itself */
    WORKER_PARTED,  /* it has told the others that it leaves */
    WORKER_LEAVES,
    WORKER_GOES, /* all of that is done */
    WORKER_CLOSES,
    WORKER_EVENTS
};

enum worker_reaction {
    WORKER_BUG = 1, /* this process does not do that */
    WORKER_IGNORE,
    WORKER_GO_ON,
    WORKER_KEEP,      /* what it has of its own, for one that leaves */
    WORKER_GIVE,      /* what is asked for */
    WORKER_TELL,      /* those who count on it; its journal is done with */
    WORKER_TELL_GIVE, /* and then give the others what it has */
    WORKER_ABORT      /* links to others end, which are told why */
};

/* The state becomes the next one. */
enum worker_reaction worker_react(enum worker_life *state, enum worker_event event);

#endif
