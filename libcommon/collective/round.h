/* SPDX-License-Identifier: Apache-2.0
 *
 * The states of a round, and how each event acts in each state. A round is one call of all members,
 * as one member sees it. A member calls and tells the others what it contributes (CALLING, CALLED).
 * When it has heard from all, small values are combined, and large ones cut into chunks (SETTLED).
 * Then chunks are sent (RUNNING).
 */
#ifndef TF_COLLECTIVE_ROUND_H
#define TF_COLLECTIVE_ROUND_H

enum round_state {
    ROUND_NEW,     /* others have called */
    ROUND_CALLING, /* this member has called, and tells the others */
    ROUND_CALLED,  /* the others have been told */
    ROUND_SETTLED, /* all members are known */
    ROUND_RUNNING,
    ROUND_OVER, /* done, failed, cancelled */
    ROUND_STATES,
};

enum round_event {
    ROUND_CALL,         /* this member calls or declines */
    ROUND_TOLD,         /* all others have been told of that call */
    ROUND_CONTRIBUTION, /* another member contributes */
    ROUND_CHUNK,        /* a part of a chunk, or a whole chunk, from another member */
    ROUND_LEAVE,        /* another member has left */
    ROUND_LOST,         /* another member is lost */
    ROUND_CANCEL,       /* the caller no longer waits */
    ROUND_EVENTS,
};

enum round_reaction {
    REACT_BUG = 1, /* cannot happen in this process */
    REACT_REFUSE,  /* the sender breaks the protocol: its link ends */
    REACT_IGNORE,
    REACT_KEEP, /* keep it for later states */
    REACT_TAKE, /* the round may continue */
    REACT_FAIL, /* the round is over; after CANCEL, without a reply */
};

enum round_reaction round_react(enum round_state state, enum round_event event);

#endif
