/* SPDX-License-Identifier: Apache-2.0
 *
 * The states of a session that is served, and what each event does in each of them.
 */
#ifndef TF_TRANSPORT_SERVED_LIFE_H
#define TF_TRANSPORT_SERVED_LIFE_H

enum served_life {
    SERVED_READING, /* its graph; only its end is heard of by then */
    SERVED_LINKING, /* tasks that it talks to */
    SERVED_OPEN,    /* its driver has been told */
    SERVED_CLOSING, /* freed when nobody holds it */
    SERVED_STATES
};

enum served_event {
    SERVED_READ,   /* the graph is there */
    SERVED_LINKED, /* a task is */
    SERVED_MISSED, /* a task that it needs cannot be reached */
    SERVED_LATE,   /* the time for links is over */
    SERVED_WHOLE,  /* it lacks no link */
    SERVED_ASKED,  /* for a step, a variable */
    SERVED_LEFT,   /* its driver asks to close it */
    SERVED_CLOSE,  /* that, or it is lost, or it cannot be served, or the server ends */
    SERVED_EVENTS
};

enum served_reaction {
    SERVED_BUG = 1, /* this process does not do that */
    SERVED_IGNORE,
    SERVED_GO_ON,
    SERVED_REFUSE,
    SERVED_FAIL, /* it is closed */
    SERVED_TELL, /* who waits for it to open; steps are cancelled */
    SERVED_END   /* the latter */
};

enum served_reaction served_life_react(enum served_life *state, enum served_event event);

#endif
