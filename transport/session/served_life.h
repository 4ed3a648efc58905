/* SPDX-License-Identifier: Apache-2.0
 *
 * The states of a served session, and how each event acts in each state.
 */
#ifndef TF_TRANSPORT_SERVED_LIFE_H
#define TF_TRANSPORT_SERVED_LIFE_H

enum served_life {
    SERVED_READING, /* reads its graph; handles no event but its end */
    SERVED_LINKING, /* waits for links to tasks that it needs */
    SERVED_OPEN,    /* its driver has been told */
    SERVED_CLOSING, /* freed when it has no holder */
    SERVED_STATES
};

enum served_event {
    SERVED_READ,   /* the graph has been read */
    SERVED_LINKED, /* a task is linked */
    SERVED_MISSED, /* a task that it needs cannot be reached */
    SERVED_LATE,   /* the time for links is over */
    SERVED_WHOLE,  /* all links are there */
    SERVED_ASKED,  /* a request for a step or a variable */
    SERVED_LEFT,   /* its driver asks to close it */
    SERVED_CLOSE,  /* the driver asks or is lost, opening fails, or the server ends */
    SERVED_EVENTS
};

enum served_reaction {
    SERVED_BUG = 1, /* cannot happen in this process */
    SERVED_IGNORE,
    SERVED_GO_ON,
    SERVED_REFUSE,
    SERVED_FAIL, /* close it */
    SERVED_TELL, /* fail the open request; cancel steps */
    SERVED_END   /* cancel steps */
};

enum served_reaction served_life_react(enum served_life *state, enum served_event event);

#endif
